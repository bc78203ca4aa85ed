// The pattern subset: a checker with the contract's bounds, and a translation
// to an ECMAScript `u` regex in which every character is a code point escape
// and every class a list of ranges, so that no raw class reaches the engine.
// Matching itself is in automaton.mjs, in linear time.

import { utf8Length } from './pointer.mjs';

const LAST = 0x10ffff;
const MAX_BYTES = 1024;
const MAX_COUNT = 100;
const MAX_PRODUCT = 1000;
const MAX_COST = 10000;

const PUNCTUATION = new Set('^$\\.*+?()[]{}|/');
const CONTROL = { t: 9, n: 10, r: 13 };
const SETS = {
  d: [[48, 57]],
  w: [[48, 57], [65, 90], [95, 95], [97, 122]],
  s: [[9, 13], [32, 32]],
};

class Refused extends Error {}

/** Sorted, merged ranges. */
function merge(ranges) {
  const sorted = ranges.toSorted((a, b) => a[0] - b[0]);
  const out = [];
  for (const [low, high] of sorted) {
    const last = out.at(-1);
    if (last !== undefined && low <= last[1] + 1) last[1] = Math.max(last[1], high);
    else out.push([low, high]);
  }
  return out;
}

function negate(ranges) {
  const out = [];
  let next = 0;
  for (const [low, high] of merge(ranges)) {
    if (low > next) out.push([next, low - 1]);
    next = high + 1;
  }
  if (next <= LAST) out.push([next, LAST]);
  return out;
}

const setOf = (letter) => (Object.hasOwn(SETS, letter) ? SETS[letter] : negate(SETS[letter.toLowerCase()]));

const classNode = (ranges) => {
  const merged = merge(ranges);
  const ascii = merged.every(([, high]) => high < 0x80);
  return { t: 'set', ranges: merged, cost: ascii ? 1 : 16 + 4 * merged.length, product: 1 };
};

const charNode = (cp) => ({ t: 'set', ranges: [[cp, cp]], cost: cp < 0x80 ? 1 : 4, product: 1 });

const joined = (t, items) => ({
  t,
  items,
  cost: items.reduce((sum, i) => sum + i.cost, 0),
  product: items.reduce((most, i) => Math.max(most, i.product), 1),
});

class Reader {
  constructor(text) {
    this.chars = [...text];
    this.at = 0;
  }

  peek(ahead = 0) {
    return this.chars[this.at + ahead];
  }

  next() {
    const c = this.chars[this.at];
    if (c === undefined) throw new Refused('ends early');
    this.at += 1;
    return c;
  }

  take(text) {
    const chars = [...text];
    if (!chars.every((c, i) => this.peek(i) === c)) return false;
    this.at += chars.length;
    return true;
  }

  alternation() {
    const branches = [this.branch()];
    while (this.take('|')) branches.push(this.branch());
    return branches.length === 1 ? branches[0] : joined('alt', branches);
  }

  branch() {
    const items = [];
    while (this.peek() !== undefined && this.peek() !== '|' && this.peek() !== ')') {
      const atom = this.atom();
      const rep = this.quantifier();
      if (rep === null) items.push(atom);
      else if (atom.t === 'assert') throw new Refused('quantified assertion');
      else items.push(this.repeat(atom, rep));
    }
    return joined('cat', items);
  }

  repeat(item, { min, max }) {
    // {n,} counts as n, * + ? as 1, another by its upper count. A count of
    // zero counts as 1, so that it never hides what stands below it.
    const factor = Math.max(1, max === Infinity ? min : max);
    const product = item.product * factor;
    if (product > MAX_PRODUCT) throw new Refused('product of counts');
    return { t: 'rep', item, min, max, cost: item.cost * factor, product };
  }

  quantifier() {
    let rep = null;
    if (this.take('*')) rep = { min: 0, max: Infinity };
    else if (this.take('+')) rep = { min: 1, max: Infinity };
    else if (this.take('?')) rep = { min: 0, max: 1 };
    else if (this.take('{')) {
      const min = this.count();
      let max = min;
      if (this.take(',')) max = this.peek() === '}' ? Infinity : this.count();
      if (!this.take('}') || max < min) throw new Refused('count');
      rep = { min, max };
    }
    if (rep !== null) this.take('?');
    return rep;
  }

  count() {
    let text = '';
    while (this.peek() !== undefined && /^[0-9]$/.test(this.peek())) text += this.next();
    if (text === '' || (text.length > 1 && text[0] === '0') || text.length > 3 || Number(text) > MAX_COUNT) {
      throw new Refused('count');
    }
    return Number(text);
  }

  atom() {
    const c = this.next();
    switch (c) {
      case '^':
        return { t: 'assert', kind: 'start', cost: 1, product: 1 };
      case '$':
        return { t: 'assert', kind: 'end', cost: 1, product: 1 };
      case '.':
        return classNode(negate([[10, 10]]));
      case '[':
        return this.class();
      case '(': {
        if (this.peek() === '?' && !this.take('?:')) throw new Refused('group');
        const inner = this.alternation();
        if (!this.take(')')) throw new Refused('open group');
        return { t: 'group', item: inner, cost: inner.cost, product: inner.product };
      }
      case '\\':
        return this.escape();
      case '*':
      case '+':
      case '?':
      case '{':
      case '}':
      case ']':
      case ')':
        throw new Refused('bare');
      default:
        return charNode(c.codePointAt(0));
    }
  }

  escape() {
    const c = this.next();
    if (c === 'b' || c === 'B') return { t: 'assert', kind: c === 'b' ? 'boundary' : 'inside', cost: 1, product: 1 };
    if ('dDwWsS'.includes(c)) return classNode(setOf(c));
    if (Object.hasOwn(CONTROL, c)) return charNode(CONTROL[c]);
    if (PUNCTUATION.has(c)) return charNode(c.codePointAt(0));
    throw new Refused('escape');
  }

  class() {
    const negated = this.take('^');
    const ranges = [];
    for (let first = true; first || this.peek() !== ']'; first = false) {
      const low = this.classItem(first);
      if (Array.isArray(low)) {
        ranges.push(...low);
        continue;
      }
      if (this.peek() === '-' && this.peek(1) !== ']') {
        this.next();
        if (this.peek() === '-') throw new Refused('set operation');
        const high = this.classItem(false);
        if (Array.isArray(high) || high < low) throw new Refused('range');
        ranges.push([low, high]);
      } else {
        ranges.push([low, low]);
      }
    }
    this.next();
    return classNode(negated ? negate(ranges) : ranges);
  }

  /** A code point, or the ranges of \d and its like. */
  classItem(first) {
    const c = this.next();
    switch (c) {
      case ']':
      case '[':
        throw new Refused('bracket in a class');
      case '-':
        // A bare hyphen is first or last; a range was read by the caller.
        if (!first && this.peek() !== ']') throw new Refused('hyphen');
        if (this.peek() === '-') throw new Refused('set operation');
        return 45;
      case '&':
      case '~':
        if (this.peek() === c) throw new Refused('set operation');
        return c.codePointAt(0);
      case '\\': {
        const e = this.next();
        if ('dDwWsS'.includes(e)) return setOf(e).map(([low, high]) => [low, high]);
        if (Object.hasOwn(CONTROL, e)) return CONTROL[e];
        if (e === '-' || PUNCTUATION.has(e)) return e.codePointAt(0);
        throw new Refused('escape in a class');
      }
      default:
        return c.codePointAt(0);
    }
  }
}

/** The tree of a pattern of the subset, or null where it is refused. */
export function parsePattern(text) {
  if (utf8Length(text) > MAX_BYTES) return null;
  try {
    const reader = new Reader(text);
    const tree = reader.alternation();
    if (reader.peek() !== undefined || tree.cost > MAX_COST) return null;
    return tree;
  } catch (e) {
    if (e instanceof Refused) return null;
    throw e;
  }
}

const point = (cp) => `\\u{${cp.toString(16)}}`;

/** The source of an equal ECMAScript regex, to be compiled with the `u` flag alone. */
export function toEcmaScript(node) {
  switch (node.t) {
    case 'set': {
      const [first] = node.ranges;
      if (node.ranges.length === 1 && first[0] === first[1]) return point(first[0]);
      return `[${node.ranges.map(([l, h]) => (l === h ? point(l) : `${point(l)}-${point(h)}`)).join('')}]`;
    }
    case 'assert':
      return { start: '^', end: '$', boundary: '\\b', inside: '\\B' }[node.kind];
    case 'cat':
      return node.items.map(toEcmaScript).join('');
    case 'alt':
      return `(?:${node.items.map(toEcmaScript).join('|')})`;
    case 'group':
      return `(?:${toEcmaScript(node.item)})`;
    case 'rep':
      return `${toEcmaScript(node.item)}{${node.min},${node.max === Infinity ? '' : node.max}}`;
    default:
      throw new Error(node.t);
  }
}
