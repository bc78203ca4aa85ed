// Runs a pattern tree as a set of states, in time linear in the text. Where a
// backtracking engine is sure to end soon, the translated ECMAScript regex is
// run as well and the two must agree: one more witness for the translation.

import { toEcmaScript } from './pattern.mjs';

const CHAR = 0;
const SPLIT = 1;
const ASSERT = 2;
const DONE = 3;

/** States are built from the end: each function takes the follower and gives the entry. */
function build(tree) {
  const states = [{ op: DONE }];
  const add = (state) => states.push(state) - 1;
  const walk = (node, next) => {
    switch (node.t) {
      case 'set':
        return add({ op: CHAR, ranges: node.ranges, next });
      case 'assert':
        return add({ op: ASSERT, kind: node.kind, next });
      case 'cat':
        return node.items.reduceRight((follower, item) => walk(item, follower), next);
      case 'alt':
        return add({ op: SPLIT, to: node.items.map((item) => walk(item, next)) });
      case 'group':
        return walk(node.item, next);
      case 'rep': {
        let entry = next;
        if (node.max === Infinity) {
          entry = add({ op: SPLIT, to: [next] });
          states[entry].to.push(walk(node.item, entry));
        } else {
          for (let i = node.min; i < node.max; i += 1) entry = add({ op: SPLIT, to: [next, walk(node.item, entry)] });
        }
        for (let i = 0; i < node.min; i += 1) entry = walk(node.item, entry);
        return entry;
      }
      default:
        throw new Error(node.t);
    }
  };
  const start = walk(tree, 0);
  return { states, start };
}

const isWord = (cp) =>
  cp !== undefined && ((cp >= 48 && cp <= 57) || (cp >= 65 && cp <= 90) || cp === 95 || (cp >= 97 && cp <= 122));

function holds(kind, points, at) {
  switch (kind) {
    case 'start':
      return at === 0;
    case 'end':
      return at === points.length;
    default: {
      const boundary = isWord(points[at - 1]) !== isWord(points[at]);
      return kind === 'boundary' ? boundary : !boundary;
    }
  }
}

function run({ states, start }, points) {
  let current = [];
  const seen = new Int32Array(states.length).fill(-1);
  for (let at = 0; at <= points.length; at += 1) {
    // A match may begin anywhere, so the start is entered at every position.
    const stack = [...current, start];
    const chars = [];
    while (stack.length > 0) {
      const i = stack.pop();
      if (seen[i] === at) continue;
      seen[i] = at;
      const state = states[i];
      if (state.op === DONE) return true;
      if (state.op === CHAR) chars.push(state);
      else if (state.op === SPLIT) for (const to of state.to) stack.push(to);
      else if (holds(state.kind, points, at)) stack.push(state.next);
    }
    const cp = points[at];
    current = [];
    if (cp === undefined) break;
    for (const state of chars) {
      if (state.ranges.some(([low, high]) => cp >= low && cp <= high)) current.push(state.next);
    }
  }
  return false;
}

/** Loops whose nesting or number could make a backtracking engine slow. */
function loops(node) {
  switch (node.t) {
    case 'cat':
    case 'alt':
      return node.items.reduce((sum, item) => sum + loops(item), 0);
    case 'group':
      return loops(node.item);
    case 'rep': {
      const inner = loops(node.item);
      return inner > 0 ? 100 : node.min === node.max ? 0 : 1;
    }
    default:
      return 0;
  }
}

/** A function from text to whether the pattern matches anywhere in it. */
export function matcher(tree) {
  let machine = null;
  let witness;
  return (text) => {
    machine ??= build(tree);
    const found = run(machine, Array.from(text, (c) => c.codePointAt(0)));
    if (text.length <= 200) {
      witness ??= loops(tree) <= 3 ? new RegExp(toEcmaScript(tree), 'u') : null;
      if (witness !== null && witness.test(text) !== found) {
        throw new Error(`automaton and ECMAScript disagree: ${witness.source} on ${JSON.stringify(text)}`);
      }
    }
    return found;
  };
}
