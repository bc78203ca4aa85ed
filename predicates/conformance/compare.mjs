// Deep equality of two trees: numbers by their exact value, objects by their
// keys in any order. The result is where they part, for a readable report.

import { equal } from './number.mjs';

/** null where both are equal, else the pointer of the first difference. */
export function difference(a, b, path = '') {
  if (a === undefined || b === undefined) return a === b ? null : path || '/';
  if (a.kind !== b.kind) return path || '/';
  switch (a.kind) {
    case 'null':
      return null;
    case 'number':
      return equal(a.dec, b.dec) ? null : path || '/';
    case 'array': {
      if (a.items.length !== b.items.length) return path || '/';
      for (const [i, item] of a.items.entries()) {
        const found = difference(item, b.items[i], `${path}/${i}`);
        if (found !== null) return found;
      }
      return null;
    }
    case 'object': {
      for (const key of new Set([...a.members.keys(), ...b.members.keys()])) {
        const found = difference(a.get(key), b.get(key), `${path}/${key}`);
        if (found !== null) return found;
      }
      return null;
    }
    default:
      return a.value === b.value ? null : path || '/';
  }
}
