// Triggers: compilation of a whole declaration and of a consumer's filters.
// What a compiled trigger does with a delivery is in decide.mjs.
//
// Faults are sought in a fixed order: the trigger's own keys, the plain
// entries, `match`, `when`, `resourceOrigins`, `types`, `normalize`,
// `variants`, `resources`, `filters`, then the chosen filters.

import { isInteger } from './number.mjs';
import { escapeToken } from './json.mjs';
import { parsePointer } from './pointer.mjs';
import { compileMatch, compilePredicate, fail, literal, literals, shape } from './predicate.mjs';
import { isOrigin, parsePrefix } from './url.mjs';

const NAME = /^[a-z][a-z0-9-]{0,62}$/;
const FIELD_TYPES = ['string', 'integer', 'number', 'boolean', 'url'];
const FILTER_TYPES = ['string', 'integer', 'number', 'boolean'];
const REQUIRED = ['connector', 'trigger', 'verificationProfile', 'nativeEvents', 'match', 'normalize'];
const OPTIONAL = ['when', 'variants', 'types', 'resources', 'resourceOrigins', 'filters'];

const word = (v, path) => (v.kind === 'string' && v.value !== '' ? v.value : fail(path));

function entries(v, path) {
  if (v.kind !== 'object' || v.repeated !== null) fail(path);
  return [...v.members].map(([key, value]) => [key, value, `${path}/${escapeToken(key)}`]);
}

/** A pointer that may hold one `*`: `{tokens, text}` or, with it, `{container, rest}` besides. */
function starPointer(v, path) {
  const tokens = v.kind === 'string' ? parsePointer(v.value) : null;
  if (tokens === null) fail(path);
  const star = tokens.indexOf('*');
  if (star < 0) return { text: v.value, tokens, list: false };
  if (tokens.indexOf('*', star + 1) >= 0) fail(path);
  return { text: v.value, tokens, list: true, container: tokens.slice(0, star), rest: tokens.slice(star + 1) };
}

function oneOf(v, allowed, path) {
  if (v === undefined) return null;
  return v.kind === 'string' && allowed.includes(v.value) ? v.value : fail(path);
}

/** One entry of `normalize`. What names other fields is checked once all are known. */
function compileField(v, path, outerType, typePath) {
  if (v.kind === 'string') {
    const at = starPointer(v, path);
    return checkField({ path, pointer: at, type: outerType, required: true, as: null, prefix: null });
  }
  shape(v, path, ['pointer'], ['type', 'required', 'as', 'prefix']);
  const at = starPointer(v.get('pointer'), path);
  const own = oneOf(v.get('type'), FIELD_TYPES, path);
  if (own !== null && outerType !== null && own !== outerType) fail(typePath);
  const required = v.get('required');
  if (required !== undefined && required.kind !== 'boolean') fail(path);
  const prefix = v.get('prefix');
  if (prefix !== undefined && prefix.kind !== 'string') fail(path);
  return checkField({
    path,
    pointer: at,
    type: own ?? outerType,
    required: required?.value ?? true,
    as: oneOf(v.get('as'), ['decimal-string'], path),
    prefix: prefix?.value ?? null,
  });
}

function checkField(field) {
  if (field.as !== null && field.type !== 'integer' && field.type !== 'number') fail(field.path);
  if (field.type === 'url' && field.pointer.list) fail(field.path);
  if (field.prefix !== null && field.type !== 'url') fail(field.path);
  return field;
}

/** Holds the url fields of a projection against the origins and the other fields. */
function linkFields(fields, origins, blame) {
  for (const name of [...fields.keys()].sort()) {
    const field = fields.get(name);
    if (field.type !== 'url') continue;
    if (origins === null) fail(field.path);
    if (field.prefix === null) continue;
    field.parts = parsePrefix(field.prefix, origins) ?? fail(blame(field));
    for (const part of field.parts) {
      if (typeof part === 'string') continue;
      const other = fields.get(part.field);
      if (other === undefined || part.field === name) fail(blame(field));
      if (other.pointer.list || other.type === 'url') fail(blame(field, other));
    }
  }
  return fields;
}

function compileVariants(v, path, base, types, origins) {
  if (v.kind !== 'array' || v.items.length === 0) fail(path);
  const names = new Set();
  return v.items.map((item, i) => {
    const here = `${path}/${i}`;
    shape(item, here, ['name'], ['match', 'when', 'normalize']);
    const name = word(item.get('name'), here);
    if (names.has(name)) fail(here);
    names.add(name);
    const match = item.get('match') === undefined ? null : compileMatch(item.get('match'), `${here}/match`);
    const when = item.get('when') === undefined ? null : compilePredicate(item.get('when'), `${here}/when`);
    const fields = new Map([...base].map(([key, field]) => [key, { ...field }]));
    const own = new Set();
    if (item.get('normalize') !== undefined) {
      for (const [key, value, at] of entries(item.get('normalize'), `${here}/normalize`)) {
        if (!base.has(key)) fail(at);
        fields.set(key, compileField(value, at, types.get(key) ?? null, `/types/${escapeToken(key)}`));
        own.add(at);
      }
    }
    // A prefix of the base can break by what the variant puts in a field's place.
    linkFields(fields, origins, (field, other) => (own.has(field.path) ? field : (other ?? field)).path);
    return { name, match, when, fields };
  });
}

/** Compiles a trigger. Throws DeclarationError. */
export function compileTrigger(v) {
  shape(v, '', REQUIRED, OPTIONAL);
  for (const key of ['connector', 'trigger']) if (!NAME.test(word(v.get(key), `/${key}`))) fail(`/${key}`);
  word(v.get('verificationProfile'), '/verificationProfile');
  const events = v.get('nativeEvents');
  if (events.kind !== 'array' || events.items.length === 0) fail('/nativeEvents');
  const nativeEvents = events.items.map((e) => word(e, '/nativeEvents'));
  const match = compileMatch(v.get('match'), '/match');
  const when = v.get('when') === undefined ? null : compilePredicate(v.get('when'), '/when');

  let origins = null;
  const listed = v.get('resourceOrigins');
  if (listed !== undefined) {
    if (listed.kind !== 'array' || listed.items.length === 0) fail('/resourceOrigins');
    origins = listed.items.map((o, i) => {
      const at = `/resourceOrigins/${i}`;
      return isOrigin(word(o, at)) ? o.value : fail(at);
    });
  }

  const normalize = entries(v.get('normalize'), '/normalize');
  const names = new Set(normalize.map(([key]) => key));
  const types = new Map();
  if (v.get('types') !== undefined) {
    for (const [key, value, at] of entries(v.get('types'), '/types')) {
      if (!names.has(key)) fail(at);
      types.set(key, oneOf(value, FIELD_TYPES, at));
    }
  }
  const fields = new Map();
  for (const [key, value, at] of normalize) {
    fields.set(key, compileField(value, at, types.get(key) ?? null, `/types/${escapeToken(key)}`));
  }
  linkFields(fields, origins, (field) => field.path);
  const variants =
    v.get('variants') === undefined ? null : compileVariants(v.get('variants'), '/variants', fields, types, origins);

  const resources = [];
  if (v.get('resources') !== undefined) {
    for (const [key, value, at] of entries(v.get('resources'), '/resources')) {
      if (!names.has(key)) fail(at);
      resources.push({ field: key, collection: word(value, at) });
    }
  }

  const filters = new Map();
  if (v.get('filters') !== undefined) {
    for (const [key, value, at] of entries(v.get('filters'), '/filters')) {
      shape(value, at, ['pointer', 'type']);
      filters.set(key, {
        pointer: starPointer(value.get('pointer'), at),
        type: oneOf(value.get('type'), FILTER_TYPES, at),
      });
    }
  }
  return { nativeEvents, match, when, variants, fields, resources, origins, filters };
}

function ofType(v, type) {
  return type === 'integer' ? v.kind === 'number' && isInteger(v.dec) : v.kind === type;
}

/** Lowers a consumer's chosen filters to one `all` in order of their names, or null. */
export function compileChosen(v, filters) {
  if (v === undefined) return null;
  const path = '/filters_chosen';
  const chosen = entries(v, path).sort((a, b) => (a[0] < b[0] ? -1 : 1));
  if (chosen.length === 0) return null;
  const children = chosen.map(([key, value, at]) => {
    const filter = filters.get(key) ?? fail(at);
    const values = value.kind === 'array' ? literals(value, at) : [literal(value, at)];
    if (!values.every((item) => ofType(item, filter.type))) fail(at);
    const { pointer } = filter;
    if (!pointer.list) return { op: 'in', path: at, pointer, values };
    const container = { tokens: pointer.container, text: pointer.container.map((t) => `/${escapeToken(t)}`).join('') };
    const child = { op: 'in', path: at, pointer: { tokens: pointer.rest, text: '' }, values };
    return { op: 'item', path: at, pointer: container, quantifier: 'some', child };
  });
  return { op: 'all', path, children };
}
