// JSON Pointers (RFC 6901) and their resolution: resolved, absent or
// unreachable. Nothing is inherited, guessed or percent-decoded.

import { escapeToken, isScalar } from './json.mjs';

export const utf8Length = (text) => Buffer.byteLength(text, 'utf8');

/** The decoded tokens of a pointer of at most 512 bytes and 32 tokens, else null. */
export function parsePointer(text) {
  if (text === '') return [];
  if (text[0] !== '/' || utf8Length(text) > 512 || /~(?![01])/.test(text)) return null;
  const tokens = text.slice(1).split('/');
  if (tokens.length > 32) return null;
  return tokens.map((t) => t.replaceAll('~1', '/').replaceAll('~0', '~'));
}

export const formatPointer = (tokens) => tokens.map((t) => `/${escapeToken(t)}`).join('');

const INDEX = /^(?:0|[1-9][0-9]*)$/;

/** A value, or the word 'absent' or 'unreachable'. */
export function resolve(root, tokens) {
  let here = root;
  for (let i = 0; i < tokens.length; i += 1) {
    const missing = i === tokens.length - 1 ? 'absent' : 'unreachable';
    if (isScalar(here)) return 'unreachable';
    let next;
    if (here.kind === 'object') {
      next = here.get(tokens[i]);
    } else {
      if (!INDEX.test(tokens[i])) return 'unreachable';
      // An index past any machine integer becomes a large float, still past the end.
      next = here.items[Number(tokens[i])];
    }
    if (next === undefined) return missing;
    here = next;
  }
  return here;
}

/** The value where it is resolved, else null. */
export function value(root, tokens) {
  const found = resolve(root, tokens);
  return typeof found === 'string' ? null : found;
}
