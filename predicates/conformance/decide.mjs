// What a compiled trigger does with one delivery, in the contract's order:
// event, ambiguity, match, when, variants, normalize, resources, URLs, filters.

import { isInteger, isCarried, isSafe, nearest, plain } from './number.mjs';
import { isScalar, Malformed, Num, parse, Str } from './json.mjs';
import { formatPointer, resolve, value } from './pointer.mjs';
import { evaluate, same } from './predicate.mjs';
import { beginsWith, canonicalUrl } from './url.mjs';

const MAX_STRING = 4096;
const MAX_LIST = 100;

class Nonmatch extends Error {
  constructor(reason, at) {
    super(reason);
    this.result = at === undefined ? { match: false, reason } : { match: false, reason, at };
  }
}

const refuse = (reason, at) => {
  throw new Nonmatch(reason, at);
};

const codePoints = (text) => {
  let n = 0;
  for (const _ of text) n += 1;
  return n;
};

const asText = (text, at) => (codePoints(text) > MAX_STRING ? refuse('string-too-long', at) : new Str(text));

/** One primitive of a field's type, or null where there is no evidence (`null` is none). */
function primitive(found, field, at) {
  if (typeof found === 'string' || found.kind === 'null') return null;
  if (!isScalar(found)) refuse('type-mismatch', at);
  const type = field.type ?? found.kind;
  switch (type) {
    case 'string':
    case 'url':
      return found.kind === 'string' ? asText(found.value, at) : refuse('type-mismatch', at);
    case 'boolean':
      return found.kind === 'boolean' ? found : refuse('type-mismatch', at);
    default:
  }
  if (found.kind !== 'number') refuse('type-mismatch', at);
  const whole = isInteger(found.dec);
  if (type === 'integer' && !whole) refuse('type-mismatch', at);
  if (field.as !== null) {
    const text = plain(found.dec, MAX_STRING);
    return text === null ? refuse('string-too-long', at) : new Str(text);
  }
  if (whole) return isSafe(found.dec) ? new Num(plain(found.dec, 20)) : refuse('integer-out-of-range', at);
  return isCarried(found.dec) ? new Num(String(nearest(found.dec))) : refuse('number-not-exact', at);
}

/** A primitive, an array of them, or undefined where the field is left out. */
function project(root, field) {
  const { pointer } = field;
  if (!pointer.list) {
    const one = primitive(resolve(root, pointer.tokens), field, pointer.text);
    if (one !== null) return one;
    return field.required ? refuse('missing-evidence', pointer.text) : undefined;
  }
  const base = formatPointer(pointer.container);
  const list = value(root, pointer.container);
  if (list === null || list.kind === 'null') return field.required ? refuse('missing-evidence', base) : undefined;
  if (list.kind !== 'array') refuse('type-mismatch', base);
  if (list.items.length > MAX_LIST) refuse('list-too-long', base);
  const out = [];
  for (const [i, item] of list.items.entries()) {
    const at = formatPointer([...pointer.container, String(i), ...pointer.rest]);
    const one = primitive(resolve(item, pointer.rest), field, at);
    if (one !== null) out.push(one);
    else return field.required ? refuse('missing-evidence', at) : undefined;
  }
  return out;
}

const ordered = (map) => [...map].sort(([a], [b]) => (a < b ? -1 : 1));

function chooseVariant(variants, root) {
  let chosen = null;
  for (const variant of variants) {
    const parts = [variant.match, variant.when].filter((p) => p !== null);
    if (!parts.every((p) => evaluate(p, root).value === 'true')) continue;
    if (chosen !== null) refuse('ambiguous-variant', variant.name);
    chosen = variant;
  }
  return chosen ?? refuse('no-variant');
}

function grant(resources, values, binding) {
  for (const { field, collection } of resources.toSorted((a, b) => (a.field < b.field ? -1 : 1))) {
    const granted = binding?.get('resources')?.get(collection);
    const members = granted?.kind === 'array' ? granted.items : [];
    const held = values.get(field);
    const items = held === undefined ? [] : Array.isArray(held) ? held : [held];
    const ok = items.length > 0 && items.every((item) => members.some((m) => same(m, item)));
    if (!ok) refuse('resource-not-granted', field);
  }
}

function identify(fields, values, origins) {
  const textOf = (name) => {
    const held = values.get(name);
    if (held === undefined) return null;
    return held.kind === 'number' ? held.text : String(held.value);
  };
  const urls = new Map();
  for (const [name, field] of ordered(fields)) {
    const held = values.get(name);
    if (field.type !== 'url' || held === undefined) continue;
    const url = canonicalUrl(held.value) ?? refuse('url-invalid', name);
    if (!origins.includes(url.origin)) refuse('origin-not-listed', name);
    if (field.prefix !== null && !beginsWith(field.parts, textOf, url.canonical)) refuse('prefix-mismatch', name);
    urls.set(name, new Str(url.canonical));
  }
  for (const [name, url] of urls) values.set(name, url);
}

function demand(predicate, root, reason) {
  if (predicate === null) return;
  const result = evaluate(predicate, root);
  if (result.value !== 'true') refuse(reason, result.at);
}

/** `{match: true, variant?, fields}` or `{match: false, reason, at?}`. `body` is bytes. */
export function decide(trigger, chosenFilters, binding, event, body) {
  try {
    const { root, repeated } = parse(body);
    if (!trigger.nativeEvents.includes(event)) refuse('event-not-listed');
    if (repeated !== null) refuse('ambiguous-evidence', repeated);
    demand(trigger.match, root, 'match-not-true');
    demand(trigger.when, root, 'when-not-true');
    const variant = trigger.variants === null ? null : chooseVariant(trigger.variants, root);
    const fields = variant === null ? trigger.fields : variant.fields;
    const values = new Map();
    for (const [name, field] of ordered(fields)) {
      const projected = project(root, field);
      if (projected !== undefined) values.set(name, projected);
    }
    grant(trigger.resources, values, binding);
    identify(fields, values, trigger.origins);
    demand(chosenFilters, root, 'filter-not-true');
    return variant === null ? { match: true, fields: values } : { match: true, variant: variant.name, fields: values };
  } catch (e) {
    if (e instanceof Malformed) return { match: false, reason: 'malformed-body' };
    if (e instanceof Nonmatch) return e.result;
    throw e;
  }
}
