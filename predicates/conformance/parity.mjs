#!/usr/bin/env node
// Holds another implementation against this one:
//   node parity.mjs [--seed N] [--count K] --other <command> [arguments…]
// Cases are generated, answered here and by the command over the line
// protocol, and compared by value. The invariants that cases carry are checked
// on both sides. Exit 1 on any difference.

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { difference } from './compare.mjs';
import { answer } from './evaluator.mjs';
import { generate, options, whole } from './generate.mjs';
import { parseText, stringify } from './json.mjs';

const SHOWN = 20;
const WIDTH = 1200;
let inFlight = 1000; // answers owed by the command before more is asked of it
const PATIENCE = 2000; // milliseconds without an answer until all is asked at once
const REMEMBERED = 16; // earlier cases an invariant may name

const argv = process.argv.slice(2);
const split = argv.indexOf('--other');
const command = split < 0 ? [] : argv.slice(split + 1);
const given = split < 0 ? null : options(argv.slice(0, split), ['seed', 'count']);
const seed = whole(given?.seed, Date.now() % 1e9);
const count = whole(given?.count, 1000);
if (given === null || seed === null || count === null || command.length === 0) {
  console.error('usage: node parity.mjs [--seed N] [--count K] --other <command> [arguments…]');
  process.exit(2);
}
console.log(`seed ${seed}`);

const cut = (text) => (text.length > WIDTH ? `${text.slice(0, WIDTH)}… (${text.length} characters)` : text);

/** A case line with its declaration out of its quotes, blanks and escapes. */
function readable(text) {
  const line = parseText(text).root;
  const out = new Map();
  for (const [key, v] of line.members) {
    let shown = v;
    if (key === 'predicate_text' || key === 'trigger_text') shown = parseText(v.value).root;
    // A tree holds one of two equal keys, so such a text stays as it is.
    if (shown !== v && parseText(v.value).repeated !== null) shown = v;
    out.set(key, shown);
  }
  return stringify(out);
}

/** Checks the invariants of cases as answers come in, one side. */
class Invariants {
  constructor(side) {
    this.side = side;
    this.recent = new Map();
  }

  /** What is broken, or null. */
  check(line, result) {
    const id = line.get('id').value;
    this.recent.set(id, result);
    if (this.recent.size > REMEMBERED) this.recent.delete(this.recent.keys().next().value);
    const named = (key) => {
      const other = line.get(key)?.value;
      return other === undefined ? undefined : this.recent.get(other);
    };
    const same = named('same_as');
    if (same !== undefined) {
      const at = difference(same, result);
      if (at !== null) return `${this.side}: not the result of ${line.get('same_as').value}, ${stringify(same)}`;
    }
    const wide = named('never_match_unless');
    const matches = (r) => r.kind === 'object' && r.get('match')?.value === true;
    if (wide !== undefined && matches(result) && !matches(wide)) {
      return `${this.side}: matches, though ${line.get('never_match_unless').value} does not: ${stringify(wide)}`;
    }
    const must = line.get('must_be')?.value;
    if (must !== undefined) {
      const found = result.kind === 'object' ? (result.get('evidence') ?? result.get('reason'))?.value : undefined;
      // An event that is not listed is no candidate, and that is decided first.
      if (found !== must && found !== 'event-not-listed') return `${this.side}: not ${must}`;
    }
    return null;
  }
}

const child = spawn(command[0], command.slice(1), { stdio: ['pipe', 'pipe', 'inherit'] });
const sides = [new Invariants('here'), new Invariants('there')];
const owed = [];
let agreed = 0;
let differ = 0;
let resume = null;

function report(text, lines) {
  differ += 1;
  if (differ > SHOWN) return;
  console.log(`\ncase   ${cut(text === 'none' ? text : readable(text))}`);
  for (const l of lines) console.log(cut(l));
}

function settle(reply) {
  const { text, mine } = owed.shift() ?? {};
  if (resume !== null && owed.length < inFlight / 2) resume();
  if (text === undefined) return report('none', [`there  a line that answers nothing: ${reply}`]);
  const line = parseText(text).root;
  const here = parseText(mine).root;
  let there;
  try {
    there = parseText(reply).root;
  } catch {
    return report(text, [`there  no JSON: ${reply}`]);
  }
  const at = there.kind === 'object' ? difference(here, there) : '/';
  if (at !== null) return report(text, [`here   ${stringify(here)}`, `there  ${stringify(there)}`, `at     ${at}`]);
  const broken = sides.map((side, i) => side.check(line, [here, there][i].get('result'))).filter((b) => b !== null);
  if (broken.length > 0) return report(text, [`here   ${stringify(here)}`, ...broken]);
  agreed += 1;
}

const gone = new Promise((done) => {
  child.on('error', (e) => done(`cannot run: ${e.message}`));
  child.on('close', (code, signal) => done(code === 0 ? null : `ended with ${signal ?? code}`));
});
let ended = false;
gone.then(() => {
  ended = true;
  if (resume !== null) resume();
});
child.stdin.on('drain', () => resume?.());
child.stdin.on('error', () => {}); // The end of the command is reported once, by `gone`.
createInterface({ input: child.stdout, crlfDelay: Infinity }).on('line', settle);

for (const text of generate(seed, count)) {
  if (ended) break;
  owed.push({ text, mine: answer(text) });
  const room = child.stdin.write(`${text}\n`);
  if (!room || owed.length >= inFlight) {
    // Wait for the pipe or for answers, but never for good: a command may end,
    // or read everything before it answers.
    let timer;
    await new Promise((done) => {
      resume = done;
      timer = setTimeout(() => {
        inFlight = Infinity;
        done();
      }, PATIENCE);
    });
    clearTimeout(timer);
    resume = null;
  }
}
child.stdin.end();
const end = await gone;
if (end !== null) console.log(`\nthe other command ${end}`);
for (const { text } of owed.splice(0)) report(text, ['there  no answer']);
console.log(`\nseed ${seed}`);
console.log(`${agreed} pairs agreed, ${differ} differ`);
process.exit(differ === 0 && end === null ? 0 : 1);
