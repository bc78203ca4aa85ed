#!/usr/bin/env node
// Generates case lines without results: node generate.mjs --seed N --count K.
// One seed and count give one sequence of lines, byte for byte.
//
// Beside what a case line holds, a line may carry an invariant:
//   same_as             the id of an earlier case with the same result
//   never_match_unless  the id of an earlier case that must match if this one does
//   must_be             the evidence or reason that the result must name

import { pathToFileURL } from 'node:url';
import { otherCases } from './generate/documents.mjs';
import { predicateCases } from './generate/predicates.mjs';
import { Random } from './generate/random.mjs';
import { triggerCases } from './generate/triggers.mjs';
import { Obj, render } from './generate/values.mjs';

const ORDER = ['id', 'kind', 'predicate', 'predicate_text', 'trigger', 'trigger_text', 'binding', 'filters_chosen', 'event', 'pointer', 'url', 'canonical_event', 'document', 'document_base64', 'same_as', 'never_match_unless', 'must_be'];

const repeats = (v) =>
  v instanceof Obj
    ? new Set(v.pairs.map(([key]) => key)).size < v.pairs.length || v.pairs.some(([, inner]) => repeats(inner))
    : Array.isArray(v) && v.some(repeats);

function line(r, id, previous, one) {
  const members = { ...one, id };
  if (members.same_as) members.same_as = previous;
  if (members.never_match_unless) members.never_match_unless = previous;
  for (const name of ['predicate', 'trigger']) {
    // A declaration that repeats a key always travels as text; of the others, half.
    if (members[name] === undefined || (r.oneIn(2) && !repeats(members[name]))) continue;
    members[`${name}_text`] = render(members[name], r, r.oneIn(2));
    members[name] = undefined;
  }
  return render(new Obj(ORDER.filter((key) => members[key] !== undefined).map((key) => [key, members[key]])));
}

/** Yields `count` case lines of the seed. */
export function* generate(seed, count) {
  const r = new Random(seed);
  let n = 0;
  let previous = null;
  while (n < count) {
    const kind = r.below(8);
    const cases = kind < 4 ? predicateCases(r) : kind < 6 ? triggerCases(r) : otherCases(r);
    for (const one of cases) {
      if (n === count) return;
      n += 1;
      const id = `g${seed}-${n}`;
      yield line(r, id, previous, one);
      previous = id;
    }
  }
}

/** Reads `--name value` pairs; what follows `--other` is left as it is. */
export function options(argv, names) {
  const out = {};
  for (let i = 0; i < argv.length; i += 1) {
    const name = argv[i].replace(/^--/, '');
    if (!argv[i].startsWith('--') || !names.includes(name) || argv[i + 1] === undefined) return null;
    out[name] = argv[i + 1];
    i += 1;
  }
  return out;
}

/** A seed or count, or the fallback. */
export function whole(text, fallback) {
  if (text === undefined) return fallback;
  return /^[0-9]{1,9}$/.test(text) ? Number(text) : null;
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const given = options(process.argv.slice(2), ['seed', 'count']);
  const seed = whole(given?.seed, Date.now() % 1e9);
  const count = whole(given?.count, 1000);
  if (given === null || seed === null || count === null) {
    console.error('usage: node generate.mjs [--seed N] [--count K]');
    process.exit(2);
  }
  console.error(`seed ${seed}`);
  process.stdout.on('error', () => process.exit(0));
  for (const text of generate(seed, count)) process.stdout.write(`${text}\n`);
}
