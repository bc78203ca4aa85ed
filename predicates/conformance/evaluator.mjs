#!/usr/bin/env node
// The second evaluator of the predicate contract, as a function of one case
// and as a program: one case object a line in, one result object a line out.
// It shares no code with the first implementation and never reads it.

import { pathToFileURL } from 'node:url';
import { canonical, eventId, sha256 } from './jcs.mjs';
import { Malformed, parse, parseText, stringify } from './json.mjs';
import { parsePointer, resolve } from './pointer.mjs';
import { compilePredicate, DeclarationError, evaluate } from './predicate.mjs';
import { compileChosen, compileTrigger } from './trigger.mjs';
import { decide } from './decide.mjs';
import { canonicalUrl } from './url.mjs';

function bodyOf(line) {
  const base64 = line.get('document_base64');
  if (base64 !== undefined) return Buffer.from(base64.value, 'base64');
  return Buffer.from(line.get('document')?.value ?? '', 'utf8');
}

/** The declaration's tree; text that is no JSON is a fault at the root. */
function declaration(line, name) {
  const text = line.get(`${name}_text`);
  if (text === undefined) return line.get(name);
  try {
    return parseText(text.value).root;
  } catch (e) {
    if (e instanceof Malformed) throw new DeclarationError('');
    throw e;
  }
}

/** Calls `use` with the root of an unambiguous document, else answers for it. */
function withEvidence(body, use) {
  let parsed;
  try {
    parsed = parse(body);
  } catch (e) {
    if (e instanceof Malformed) return { evidence: 'malformed-body' };
    throw e;
  }
  if (parsed.repeated !== null) return { evidence: 'ambiguous-evidence', at: parsed.repeated };
  return use(parsed.root);
}

function predicateCase(line) {
  const compiled = compilePredicate(declaration(line, 'predicate'));
  if (line.get('document') === undefined && line.get('document_base64') === undefined) return { valid: true };
  return withEvidence(bodyOf(line), (root) => evaluate(compiled, root).value);
}

function triggerCase(line) {
  const trigger = compileTrigger(declaration(line, 'trigger'));
  const chosen = compileChosen(line.get('filters_chosen'), trigger.filters);
  if (line.get('event') === undefined) return { valid: true };
  return decide(trigger, chosen, line.get('binding'), line.get('event').value, bodyOf(line));
}

function pointerCase(line) {
  return withEvidence(bodyOf(line), (root) => {
    const tokens = parsePointer(line.get('pointer').value);
    if (tokens === null) return { resolution: 'invalid' };
    const found = resolve(root, tokens);
    return typeof found === 'string' ? { resolution: found } : { resolution: 'resolved', value: found };
  });
}

function jcsCase(line) {
  return withEvidence(bodyOf(line), (root) => {
    const text = canonical(root);
    return text === null ? { invalid: true } : { canonical: text, sha256: sha256(text) };
  });
}

const KINDS = {
  predicate: predicateCase,
  'predicate-invalid': predicateCase,
  trigger: triggerCase,
  'trigger-invalid': triggerCase,
  document: (line) => withEvidence(bodyOf(line), () => ({ evidence: 'ok' })),
  pointer: pointerCase,
  url: (line) => canonicalUrl(line.get('url').value) ?? { invalid: true },
  jcs: jcsCase,
  'event-id': (line) => ({ id: eventId(line.get('canonical_event')) }),
};

/** The result of one case, whose tree is that of its line. */
export function evaluateCase(line) {
  try {
    return KINDS[line.get('kind').value](line);
  } catch (e) {
    if (e instanceof DeclarationError) return { error_path: e.path };
    throw e;
  }
}

/** The answer line of a case line, both text. */
export function answer(text) {
  const line = parseText(text).root;
  return stringify({ id: line.get('id').value, result: evaluateCase(line) });
}

async function main() {
  process.stdin.setEncoding('utf8');
  let rest = '';
  for await (const chunk of process.stdin) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop();
    const out = lines.filter((l) => l.trim() !== '').map((l) => `${answer(l)}\n`);
    if (out.length > 0 && !process.stdout.write(out.join(''))) {
      await new Promise((done) => process.stdout.once('drain', done));
    }
  }
  if (rest.trim() !== '') process.stdout.write(`${answer(rest)}\n`);
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) await main();
