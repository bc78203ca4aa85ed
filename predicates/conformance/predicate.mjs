// Predicates: compilation with every bound and error path of the contract, and
// three-valued evaluation. Compilation reads the declaration in document order
// and stops at the first fault; at one node, the node's own shape is judged
// before its operand, and the operand's own keys before the nodes inside it.

import { escapeToken, isScalar } from './json.mjs';
import { compareInstants, parseInstant } from './instant.mjs';
import { matcher } from './automaton.mjs';
import { compare, equal, isInteger, isLiteral } from './number.mjs';
import { parsePattern } from './pattern.mjs';
import { parsePointer, resolve, utf8Length, value } from './pointer.mjs';

export class DeclarationError extends Error {
  constructor(path) {
    super(`invalid declaration at ${JSON.stringify(path)}`);
    this.path = path;
  }
}

export const fail = (path) => {
  throw new DeclarationError(path);
};

const MAX_DEPTH = 8;
const MAX_NODES = 128;
const MAX_CHILDREN = 32;
const MAX_VALUES = 100;
const MAX_LITERAL = 1024;
const MAX_ITEMS = 1000;

const TYPES = new Set(['string', 'number', 'integer', 'boolean', 'null', 'object', 'array']);
const COMPARES = {
  lt: (c) => c < 0,
  lte: (c) => c <= 0,
  gt: (c) => c > 0,
  gte: (c) => c >= 0,
};
const QUANTIFIERS = ['some', 'every', 'none', 'one'];

/** An object with all of `required` and at most `optional` besides, no key twice. */
export function shape(v, path, required, optional = []) {
  if (v.kind !== 'object' || v.repeated !== null) fail(path);
  for (const key of v.members.keys()) if (!required.includes(key) && !optional.includes(key)) fail(path);
  for (const key of required) if (!v.members.has(key)) fail(path);
  return v;
}

/** A scalar literal within its bounds. */
export function literal(v, path) {
  if (!isScalar(v)) fail(path);
  if (v.kind === 'string' && utf8Length(v.value) > MAX_LITERAL) fail(path);
  if (v.kind === 'number' && !isLiteral(v.dec)) fail(path);
  return v;
}

/** An array of 1 to 100 scalar literals. */
export function literals(v, path) {
  if (v.kind !== 'array' || v.items.length < 1 || v.items.length > MAX_VALUES) fail(path);
  for (const item of v.items) literal(item, path);
  return v.items;
}

function text(v, path) {
  if (v.kind !== 'string') fail(path);
  return literal(v, path).value;
}

function pointer(v, path) {
  const tokens = v.kind === 'string' ? parsePointer(v.value) : null;
  if (tokens === null) fail(path);
  return { text: v.value, tokens };
}

function instant(v, path) {
  return parseInstant(text(v, path)) ?? fail(path);
}

const pointed = (make, ...keys) => (operand, path) => {
  shape(operand, path, ['pointer', ...keys]);
  const at = pointer(operand.get('pointer'), path);
  return { pointer: at, ...(make === null ? {} : make(operand, path)) };
};

const stringLeaf = pointed((o, path) => ({ value: text(o.get('value'), path) }), 'value');
const instantLeaf = pointed((o, path) => ({ value: instant(o.get('value'), path) }), 'value');

const LEAVES = {
  exists: pointed(null),
  absent: pointed(null),
  type: pointed((o, path) => {
    const is = o.get('is');
    if (is.kind !== 'string' || !TYPES.has(is.value)) fail(path);
    return { is: is.value };
  }, 'is'),
  equals: pointed((o, path) => ({ values: [literal(o.get('value'), path)] }), 'value'),
  in: pointed((o, path) => ({ values: literals(o.get('values'), path) }), 'values'),
  prefix: stringLeaf,
  suffix: stringLeaf,
  contains: stringLeaf,
  matches: pointed((o, path) => {
    const source = o.get('pattern');
    const tree = source.kind === 'string' ? parsePattern(source.value) : null;
    if (tree === null) fail(path);
    return { test: matcher(tree) };
  }, 'pattern'),
  compare: pointed((o, path) => {
    const op = o.get('op');
    if (op.kind !== 'string' || !Object.hasOwn(COMPARES, op.value)) fail(path);
    const bound = literal(o.get('value'), path);
    if (bound.kind !== 'number') fail(path);
    return { holds: COMPARES[op.value], value: bound.dec };
  }, 'op', 'value'),
  before: instantLeaf,
  after: instantLeaf,
  same: (operand, path) => {
    shape(operand, path, ['left', 'right']);
    return { first: pointer(operand.get('left'), path), second: pointer(operand.get('right'), path) };
  },
  transition: (operand, path) => {
    shape(operand, path, ['from', 'to'], ['was', 'becomes']);
    const out = { first: pointer(operand.get('from'), path), second: pointer(operand.get('to'), path) };
    for (const key of ['was', 'becomes']) if (operand.members.has(key)) out[key] = literal(operand.get(key), path);
    return out;
  },
};

function compileNode(v, path, depth, count) {
  count.nodes += 1;
  if (depth > MAX_DEPTH || count.nodes > MAX_NODES) fail(path);
  if (v.kind !== 'object' || v.repeated !== null || v.members.size !== 1) fail(path);
  const [[op, operand]] = v.members;
  const inner = `${path}/${escapeToken(op)}`;
  switch (op) {
    case 'all':
    case 'any': {
      if (operand.kind !== 'array' || operand.items.length < 1 || operand.items.length > MAX_CHILDREN) fail(inner);
      const children = operand.items.map((child, i) => compileNode(child, `${inner}/${i}`, depth + 1, count));
      return { op, path, children };
    }
    case 'not':
      return { op, path, child: compileNode(operand, inner, depth + 1, count) };
    case 'item': {
      shape(operand, inner, ['pointer'], QUANTIFIERS);
      if (operand.members.size !== 2) fail(inner);
      const at = pointer(operand.get('pointer'), inner);
      const quantifier = QUANTIFIERS.find((q) => operand.members.has(q));
      const child = compileNode(operand.get(quantifier), `${inner}/${quantifier}`, depth + 1, count);
      return { op, path, pointer: at, quantifier, child };
    }
    default:
      if (!Object.hasOwn(LEAVES, op)) fail(path);
      return { op, path, ...LEAVES[op](operand, inner) };
  }
}

/** Compiles a predicate; `path` is where the declaration stands. Throws DeclarationError. */
export const compilePredicate = (v, path = '') => compileNode(v, path, 1, { nodes: 0 });

/** Compiles `match`: an object of 1 to 32 pointers to scalars, in UTF-16 order of its keys. */
export function compileMatch(v, path) {
  if (v.kind !== 'object' || v.repeated !== null) fail(path);
  if (v.members.size < 1 || v.members.size > MAX_CHILDREN) fail(path);
  const children = [...v.members.keys()].sort().map((key) => {
    const entry = `${path}/${escapeToken(key)}`;
    const tokens = parsePointer(key) ?? fail(entry);
    const wanted = v.get(key);
    const values = wanted.kind === 'array' ? literals(wanted, entry) : [literal(wanted, entry)];
    return { op: wanted.kind === 'array' ? 'in' : 'equals', path: entry, pointer: { text: key, tokens }, values };
  });
  return { op: 'all', path, children };
}

/** Exact equality of scalars; another type differs. */
export function same(a, b) {
  if (a.kind !== b.kind || !isScalar(a)) return false;
  if (a.kind === 'number') return equal(a.dec, b.dec);
  return a.kind === 'null' || a.value === b.value;
}

const not = (v) => (v === 'true' ? 'false' : v === 'false' ? 'true' : 'unknown');
const of = (flag) => (flag ? 'true' : 'false');
const all = (values) => (values.includes('false') ? 'false' : values.includes('unknown') ? 'unknown' : 'true');
const any = (values) => (values.includes('true') ? 'true' : values.includes('unknown') ? 'unknown' : 'false');

function quantify(quantifier, values) {
  switch (quantifier) {
    case 'some':
      return any(values);
    case 'every':
      return values.length === 0 ? 'unknown' : all(values);
    case 'none':
      return not(any(values));
    default: {
      const hits = values.filter((v) => v === 'true').length;
      if (hits > 1) return 'false';
      return values.includes('unknown') ? 'unknown' : of(hits === 1);
    }
  }
}

function isOfType(v, type) {
  if (type === 'integer') return v.kind === 'number' && isInteger(v.dec);
  return v.kind === type;
}

function leaf(node, root) {
  if (node.op === 'exists' || node.op === 'absent') {
    const found = resolve(root, node.pointer.tokens);
    if (found === 'unreachable') return 'unknown';
    return of((found === 'absent') === (node.op === 'absent'));
  }
  const v = value(root, node.pointer.tokens);
  if (v === null) return 'unknown';
  switch (node.op) {
    case 'type':
      return of(isOfType(v, node.is));
    case 'equals':
    case 'in':
      return of(node.values.some((wanted) => same(wanted, v)));
    case 'compare':
      return v.kind === 'number' ? of(node.holds(compare(v.dec, node.value))) : 'unknown';
    default:
  }
  if (v.kind !== 'string') return 'unknown';
  switch (node.op) {
    case 'prefix':
      return of(v.value.startsWith(node.value));
    case 'suffix':
      return of(v.value.endsWith(node.value));
    case 'contains':
      return of(v.value.includes(node.value));
    case 'matches':
      return of(node.test(v.value));
    default: {
      const when = parseInstant(v.value);
      if (when === null) return 'unknown';
      const order = compareInstants(when, node.value);
      return of(node.op === 'before' ? order < 0 : order > 0);
    }
  }
}

function pair(node, root) {
  const ends = [node.first, node.second].map((p) => {
    const v = value(root, p.tokens);
    return v !== null && isScalar(v) ? v : null;
  });
  const [a, b] = ends;
  if (a === null || b === null) {
    return { value: 'unknown', at: a !== null && b === null ? node.second.text : node.first.text };
  }
  if (node.op === 'same') return { value: of(same(a, b)), at: node.first.text };
  const changed = !same(a, b);
  const was = node.was === undefined || same(a, node.was);
  const becomes = node.becomes === undefined || same(b, node.becomes);
  return { value: of(changed && was && becomes), at: node.first.text };
}

/**
 * Evaluates a compiled node: `{value, at}`, where `at` is the pointer of the
 * deciding leaf. With a `trace` array, each node's path and value is appended
 * (a node inside `item` has a value an item, so it is not listed).
 */
export function evaluate(node, root, trace = null) {
  const slot = trace === null ? null : { path: node.path, value: null };
  if (slot !== null) trace.push(slot);
  const result = decide(node, root, trace);
  if (slot !== null) slot.value = result.value;
  return result;
}

function decide(node, root, trace) {
  switch (node.op) {
    case 'all':
    case 'any': {
      const results = node.children.map((child) => evaluate(child, root, trace));
      const values = results.map((r) => r.value);
      const deciding = node.op === 'all' ? 'false' : 'true';
      const first = [values.indexOf(deciding), values.indexOf('unknown'), 0].find((i) => i >= 0);
      return { value: node.op === 'all' ? all(values) : any(values), at: results[first].at };
    }
    case 'not': {
      const result = evaluate(node.child, root, trace);
      return { value: not(result.value), at: result.at };
    }
    case 'item': {
      const list = value(root, node.pointer.tokens);
      if (list === null || list.kind !== 'array' || list.items.length > MAX_ITEMS) {
        return { value: 'unknown', at: node.pointer.text };
      }
      const values = list.items.map((item) => evaluate(node.child, item).value);
      return { value: quantify(node.quantifier, values), at: node.pointer.text };
    }
    case 'same':
    case 'transition':
      return pair(node, root);
    default:
      return { value: leaf(node, root), at: node.pointer.text };
  }
}
