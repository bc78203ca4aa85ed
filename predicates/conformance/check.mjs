#!/usr/bin/env node
// Runs published cases against the evaluator: node check.mjs <cases.jsonl>.
// A case expects `expect`, or `error_path` for a declaration that must fail.

import { readFileSync } from 'node:fs';
import { difference } from './compare.mjs';
import { evaluateCase } from './evaluator.mjs';
import { parseText, stringify } from './json.mjs';

const file = process.argv[2];
if (file === undefined) {
  console.error('usage: node check.mjs <cases.jsonl>');
  process.exit(2);
}
let passed = 0;
let failed = 0;
for (const text of readFileSync(file, 'utf8').split('\n')) {
  if (text.trim() === '') continue;
  const line = parseText(text).root;
  const wanted = line.get('expect') ?? parseText(stringify({ error_path: line.get('error_path') })).root;
  let shown;
  let same = false;
  try {
    shown = stringify(evaluateCase(line));
    same = difference(wanted, parseText(shown).root) === null;
  } catch (e) {
    shown = e.stack;
  }
  if (same) {
    passed += 1;
  } else {
    failed += 1;
    console.log(`${line.get('id').value}: expected ${stringify(wanted).slice(0, 300)}, got ${shown.slice(0, 300)}`);
  }
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
