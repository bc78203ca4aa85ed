// RFC 8785: the canonical form of a tree, its SHA-256, and the id of a
// canonical event. The canonicalizer rounds numbers as RFC 8785 does.

import { createHash } from 'node:crypto';
import { nearest } from './number.mjs';
import { Obj } from './json.mjs';

/** Canonical text, or null where a number has no binary64 at all. */
export function canonical(v) {
  switch (v.kind) {
    case 'null':
      return 'null';
    case 'boolean':
    case 'string':
      return JSON.stringify(v.value);
    case 'number': {
      const near = nearest(v.dec);
      return Number.isFinite(near) ? String(near) : null;
    }
    case 'array': {
      const items = v.items.map(canonical);
      return items.includes(null) ? null : `[${items.join(',')}]`;
    }
    default: {
      // JavaScript compares strings by UTF-16 code units, which is the order wanted.
      const keys = [...v.members.keys()].sort();
      const values = keys.map((key) => canonical(v.get(key)));
      return values.includes(null) ? null : `{${keys.map((k, i) => `${JSON.stringify(k)}:${values[i]}`).join(',')}}`;
    }
  }
}

export const sha256 = (text) => createHash('sha256').update(text, 'utf8').digest('hex');

const without = (obj, key) => {
  const out = new Obj();
  for (const [k, v] of obj.members) if (k !== key) out.members.set(k, v);
  return out;
};

/** The id of a canonical event: everything counts but `source.receivedAt`. */
export function eventId(event) {
  const out = without(event, 'source');
  if (event.get('source') !== undefined) out.members.set('source', without(event.get('source'), 'receivedAt'));
  const text = canonical(out);
  return text === null ? null : sha256(text);
}
