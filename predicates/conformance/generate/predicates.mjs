// Predicates of every operator over a document, faults one at a time, bounds
// at n and n+1, and the pairs that must agree.

import { formatPointer } from '../pointer.mjs';
import { badPattern, boundPattern, pattern, subject } from './patterns.mjs';
import {
  anyInstant, BAD_POINTERS, document, goodNumber, instant, noInstant, number, Obj, obj, paths, pointer, raw, Raw, render, respell, scalar,
  string, value, withRepeatedKey,
} from './values.mjs';

const TYPES = ['string', 'number', 'integer', 'boolean', 'null', 'object', 'array'];

const isScalar = (v) => !Array.isArray(v) && !(v instanceof Obj);

// Only numbers that compile: the wild ones of a document are left to faults.
const compiles = (v) => isScalar(v) && !(v instanceof Raw);

/** A literal that compiles, often one that the document holds. */
function literal(r, doc) {
  const held = paths(doc).map(([, v]) => v).filter(compiles);
  return r.oneIn(2) && held.length > 0 ? r.pick(held) : scalar(r, goodNumber);
}

function piece(r, doc) {
  const held = paths(doc).map(([, v]) => v).filter((v) => typeof v === 'string');
  if (held.length === 0 || r.oneIn(3)) return string(r);
  const chars = [...r.pick(held)];
  const start = r.below(chars.length + 1);
  return chars.slice(start, start + r.below(4)).join('');
}

const LEAVES = {
  exists: (r, doc) => obj({ pointer: pointer(r, doc) }),
  absent: (r, doc) => obj({ pointer: pointer(r, doc) }),
  type: (r, doc) => obj({ pointer: pointer(r, doc), is: r.pick(TYPES) }),
  equals: (r, doc) => obj({ pointer: pointer(r, doc), value: literal(r, doc) }),
  in: (r, doc) => obj({ pointer: pointer(r, doc), values: Array.from({ length: 1 + r.below(3) }, () => literal(r, doc)) }),
  prefix: (r, doc) => obj({ pointer: pointer(r, doc), value: piece(r, doc) }),
  suffix: (r, doc) => obj({ pointer: pointer(r, doc), value: piece(r, doc) }),
  contains: (r, doc) => obj({ pointer: pointer(r, doc), value: piece(r, doc) }),
  matches: (r, doc) => obj({ pointer: pointer(r, doc), pattern: r.pick(['a', '^a', 'b$', '^$', '', '[a-c]+', '^\\w+$', '^.$', '\\s', '^[^a]']) }),
  compare: (r, doc) => obj({ pointer: pointer(r, doc), op: r.pick(['lt', 'lte', 'gt', 'gte']), value: goodNumber(r) }),
  before: (r, doc) => obj({ pointer: pointer(r, doc), value: instant(r) }),
  after: (r, doc) => obj({ pointer: pointer(r, doc), value: instant(r) }),
  same: (r, doc) => obj({ left: pointer(r, doc), right: pointer(r, doc) }),
  transition: (r, doc) =>
    obj({
      from: pointer(r, doc),
      to: pointer(r, doc),
      was: r.oneIn(3) ? literal(r, doc) : undefined,
      becomes: r.oneIn(3) ? literal(r, doc) : undefined,
    }),
};

const node = (op, operand) => new Obj([[op, operand]]);
const not = (p) => node('not', p);

const SUITS = {
  string: ['equals', 'in', 'prefix', 'suffix', 'contains', 'matches', 'before', 'after', 'type'],
  number: ['equals', 'in', 'compare', 'compare', 'type'],
};

/** A leaf about a scalar that the document holds, of an operator that suits it. */
function suited(r, doc) {
  const held = paths(doc).filter(([, v]) => v instanceof Raw || typeof v === 'string');
  if (held.length === 0) return null;
  const [tokens, v] = r.pick(held);
  const op = r.pick(SUITS[typeof v === 'string' ? 'string' : 'number']);
  const at = formatPointer(tokens);
  const built = LEAVES[op](r, obj({ a: v, b: r.pick(held)[1] }));
  return node(op, new Obj(built.pairs.map(([k, inner]) => [k, k === 'pointer' ? at : inner])));
}

export function leaf(r, doc) {
  const fitting = r.oneIn(3) ? null : suited(r, doc);
  if (fitting !== null) return fitting;
  const op = r.pick(Object.keys(LEAVES));
  return node(op, LEAVES[op](r, doc));
}

const operand = (pairs, r) => new Obj(r.shuffle(pairs));

function item(r, doc, inner) {
  const lists = paths(doc).filter(([, v]) => Array.isArray(v));
  const chosen = lists.length > 0 && !r.oneIn(5) ? r.pick(lists) : null;
  const at = chosen === null ? pointer(r, doc) : formatPointer(chosen[0]);
  const sample = chosen !== null && chosen[1].length > 0 ? r.pick(chosen[1]) : value(r, 1);
  return { at, inner: inner(sample) };
}

/** A predicate that compiles, of at most the depth. `at` builds one for a leaf's place. */
export function predicate(r, doc, depth, at = leaf) {
  const n = depth <= 1 ? 0 : r.below(10);
  if (n < 4) return at(r, doc);
  const child = (d) => predicate(r, d, depth - 1, at);
  if (n < 6) return node('all', Array.from({ length: 1 + r.below(4) }, () => child(doc)));
  if (n < 8) return node('any', Array.from({ length: 1 + r.below(4) }, () => child(doc)));
  if (n < 9) return not(child(doc));
  const { at: where, inner } = item(r, doc, child);
  return node('item', operand([['pointer', where], [r.pick(['some', 'every', 'none', 'one']), inner]], r));
}

const BAD_NUMBERS = ['9007199254740992', '-9007199254740992', '1e16', '1E400', '1e-400', '0.10000000000000000001', '1.5e300', '1e99999999999', '9007199254740991.5'];

/** A node that does not compile, for one reason. */
function badNode(r, doc) {
  const p = pointer(r, doc);
  const good = leaf(r, doc);
  const [op, operandOf] = good.pairs[0];
  switch (r.below(16)) {
    case 0:
      return new Obj([]);
    case 1:
      return new Obj([...good.pairs, ['exists', obj({ pointer: p })], ['not', good]].slice(0, 2 + r.below(2)));
    case 2:
      return node(r.pick(['xor', 'Equals', 'none', 'some', '', 'a/b~', '__proto__', 'toString']), operandOf);
    case 3:
      return r.pick([null, true, 'x', raw(1), [], [good]]);
    case 4:
      return node(op, new Obj([...operandOf.pairs, [r.pick(['fold', 'x', 'Pointer']), r.oneIn(2)]]));
    case 5:
      return node(op, new Obj(operandOf.pairs.slice(1)));
    case 6:
      return node(op, new Obj([...operandOf.pairs, r.pick(operandOf.pairs)]));
    case 7:
      return node(op, r.pick([null, p, [], raw(1), new Obj([])]));
    case 8:
      return node(op, new Obj(operandOf.pairs.map(([k, v], i) => [k, i === 0 ? r.pick([...BAD_POINTERS, null, raw(1)]) : v])));
    case 9:
      return node('equals', obj({ pointer: p, value: r.pick([[], obj({}), raw(r.pick(BAD_NUMBERS))]) }));
    case 10:
      return node('in', obj({ pointer: p, values: r.pick([[], [raw(1), raw(r.pick(BAD_NUMBERS))], raw(1), [[raw(1)]], obj({ 0: 'a' })]) }));
    case 11:
      return node('matches', obj({ pointer: p, pattern: r.oneIn(8) ? raw(1) : badPattern(r) }));
    case 12:
      return node(r.pick(['before', 'after']), obj({ pointer: p, value: r.oneIn(5) ? raw(0) : noInstant(r) }));
    case 13:
      return node('compare', obj({ pointer: p, op: r.pick(['LT', 'eq', 'lt']), value: r.pick(['1', null, raw(r.pick(BAD_NUMBERS))]) }));
    case 14:
      return node('item', r.pick([
        obj({ pointer: p }), obj({ some: good }), obj({ pointer: p, some: good, every: good }), obj({ pointer: p, all: good }),
        new Obj([['pointer', p], ['one', good], ['one', good]]), obj({ pointer: p, none: [good] }), obj({ pointer: p, some: new Obj([]) }),
      ]));
    default:
      return node(r.pick(['all', 'any', 'not']), r.pick([[], obj({}), null, 'x', [new Obj([])]]));
  }
}

function chain(r, doc, depth) {
  let p = leaf(r, doc);
  for (let i = 1; i < depth; i += 1) {
    const n = r.below(4);
    if (n === 0) p = node('all', [p]);
    else if (n === 1) p = node('any', [p]);
    else if (n === 2) p = not(p);
    else p = node('item', operand([['pointer', pointer(r, doc)], ['some', p]], r));
  }
  return p;
}

function bound(r, doc) {
  const past = r.below(2);
  const p = pointer(r, doc);
  switch (r.below(12)) {
    case 0:
      return [chain(r, doc, 8 + past), doc];
    case 1: {
      // 1 + 4 + 4 * 30 = 125 nodes, then 3 or 4 leaves more.
      const groups = Array.from({ length: 4 }, () => node(r.pick(['all', 'any']), Array.from({ length: 30 }, () => leaf(r, doc))));
      return [node('all', [...groups, ...Array.from({ length: 3 + past }, () => leaf(r, doc))]), doc];
    }
    case 2:
      return [node(r.pick(['all', 'any']), Array.from({ length: 32 + past }, () => leaf(r, doc))), doc];
    case 3:
      return [node('in', obj({ pointer: p, values: Array.from({ length: 100 + past }, () => scalar(r, goodNumber)) })), doc];
    case 4: {
      const text = r.oneIn(2) ? 'a'.repeat(1024 + past) : '\u00e9'.repeat(512) + (past === 1 ? 'a' : '');
      const op = r.pick(['equals', 'prefix', 'suffix', 'contains', 'in']);
      return [node(op, op === 'in' ? obj({ pointer: '/a', values: ['x', text] }) : obj({ pointer: '/a', value: text })), obj({ a: text })];
    }
    case 5:
      return [node('exists', obj({ pointer: r.oneIn(2) ? `/${'k'.repeat(511 + past)}` : `/${'\u00e9'.repeat(255)}${past ? 'ab' : 'a'}` })), doc];
    case 6:
      return [node('absent', obj({ pointer: '/a'.repeat(32 + past) })), doc];
    case 7: {
      const list = Array.from({ length: 1000 + past }, () => raw(r.pick([0, 1])));
      const inner = node('compare', obj({ pointer: '', op: 'gte', value: raw(r.below(2)) }));
      return [node('item', obj({ pointer: '/a', [r.pick(['some', 'every', 'none', 'one'])]: inner })), obj({ a: list })];
    }
    default: {
      const text = 'a'.repeat(r.pick([0, 1, 99, 100, 101, 1000]));
      return [node('matches', obj({ pointer: '/a', pattern: boundPattern(r) })), obj({ a: text })];
    }
  }
}

/** The predicate with children of `all` and `any` in another order. */
function permute(p, r) {
  if (Array.isArray(p)) return p.map((x) => permute(x, r));
  if (!(p instanceof Obj)) return p;
  return new Obj(p.pairs.map(([k, v]) => [k, (k === 'all' || k === 'any') && Array.isArray(v) ? r.shuffle(v.map((x) => permute(x, r))) : permute(v, r)]));
}

function paired(r, doc, p, body) {
  const same = (variant, other = body) => ({ kind: 'predicate', predicate: variant, document: other });
  switch (r.below(6)) {
    case 0:
      return [same(p), { ...same(not(not(p))), same_as: true }];
    case 1: {
      const at = obj({ pointer: pointer(r, doc) });
      return [same(node('absent', at)), { ...same(not(node('exists', at))), same_as: true }];
    }
    case 2: {
      const { at, inner } = item(r, doc, (d) => predicate(r, d, 2));
      const quantified = (q) => node('item', obj({ pointer: at, [q]: inner }));
      return [same(quantified('none')), { ...same(not(quantified('some'))), same_as: true }];
    }
    case 3:
      return [same(p), { ...same(permute(p, r)), same_as: true }];
    case 4:
      return [same(p), { ...same(p, respell(doc, r)), same_as: true }];
    default: {
      const twice = withRepeatedKey(doc, r);
      return twice === null ? [same(p)] : [{ ...same(p, render(twice)), must_be: 'ambiguous-evidence' }];
    }
  }
}

const MIXED = [raw(1), raw('1.0'), raw(0), raw(-1), raw('0.5'), 'x', 'a', null, true, obj({}), [], obj({ k: raw(1) }), obj({ k: 'x' }), [raw(1)], [raw(1), raw(-1)]];

/** A quantifier over a short list in which true, false and unknown meet. */
function listCase(r) {
  const at = r.oneIn(3) ? '/k' : '';
  const inner = r.pick([
    node('compare', obj({ pointer: at, op: r.pick(['gt', 'gte', 'lt']), value: raw(0) })),
    node('equals', obj({ pointer: at, value: r.pick([raw(1), 'x', null]) })),
    node('prefix', obj({ pointer: at, value: r.pick(['', 'a']) })),
    node('exists', obj({ pointer: '/k' })),
    node('item', obj({ pointer: '', [r.pick(['some', 'every', 'none', 'one'])]: node('compare', obj({ pointer: '', op: 'gt', value: raw(0) })) })),
  ]);
  const few = r.shuffle(MIXED).slice(0, 3);
  const list = Array.from({ length: r.below(5) }, () => r.pick(few));
  const quantified = node('item', obj({ pointer: '/l', [r.pick(['some', 'every', 'none', 'one', 'one'])]: inner }));
  return { kind: 'predicate', predicate: r.oneIn(4) ? not(quantified) : quantified, document: render(obj({ l: list })) };
}

/** One character against one class. */
function classCase(r) {
  const chars = [...'\t\n\u000b\f\r !-09AZ_az{\u007f\u0085\u00a0\u00e9\u0661\u2028\ufeff\u{1f600}'];
  const one = r.pick(['.', '\\d', '\\D', '\\w', '\\W', '\\s', '\\S', '[^a]', '[\\s\\d]', '[^\\s]', '[^\\W]', '[!-z]', '[\u00e0-\u00ff]', '[^\\D\\d]', '[^-!]', '[a\\-z]']);
  return { kind: 'predicate', predicate: node('matches', obj({ pointer: '', pattern: `^${one}$` })), document: render(r.pick(chars), r, r.oneIn(2)) };
}

/** One or two cases about predicates. */
export function predicateCases(r) {
  const doc = document(r);
  const body = r.oneIn(4) ? respell(doc, r) : render(doc);
  const n = r.below(40);
  if (n < 2) return [listCase(r)];
  if (n < 3) return [classCase(r)];
  if (n < 18) return [{ kind: 'predicate', predicate: predicate(r, doc, 4), document: body }];
  if (n < 28) return paired(r, doc, predicate(r, doc, 4), body);
  if (n < 33) {
    // One leaf of an otherwise valid predicate is broken.
    let broken = false;
    const p = predicate(r, doc, 4, (rr, d) => {
      if (broken || rr.oneIn(3)) return leaf(rr, d);
      broken = true;
      return badNode(rr, d);
    });
    return [{ kind: 'predicate', predicate: broken ? p : node('all', [leaf(r, doc), badNode(r, doc)]), document: body }];
  }
  if (n < 38) {
    const text = subject(r);
    if (r.oneIn(2)) {
      const dated = obj({ a: anyInstant(r) });
      return [{ kind: 'predicate', predicate: node(r.pick(['before', 'after']), obj({ pointer: '/a', value: instant(r) })), document: render(dated, r, true) }];
    }
    return [{ kind: 'predicate', predicate: node('matches', obj({ pointer: '/a', pattern: r.oneIn(6) ? badPattern(r) : pattern(r) })), document: render(obj({ a: text }), r, r.oneIn(2)) }];
  }
  if (n < 39) {
    const numbers = obj({ a: number(r), b: value(r, 0) });
    const ops = ['lt', 'lte', 'gt', 'gte'].map((op) => node('compare', obj({ pointer: r.pick(['/a', '/b']), op, value: goodNumber(r) })));
    return [{ kind: 'predicate', predicate: r.pick([...ops, node('same', obj({ left: '/a', right: '/b' }))]), document: render(numbers, r, true) }];
  }
  const [p, d] = bound(r, doc);
  return [{ kind: 'predicate', predicate: p, document: render(d) }];
}
