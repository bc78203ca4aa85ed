// URL identity: one canonical spelling of an absolute https URL, its origin,
// and prefixes with placeholders. It reads RFC 3986 by hand: no URL parser of
// the platform takes part, since those repair what must be refused.

const UNRESERVED = /[A-Za-z0-9\-._~]/;
const PATH = /^(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/]|%[0-9A-Fa-f]{2})*$/;
const QUERY = /^(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/?]|%[0-9A-Fa-f]{2})*$/;
const HOST = /^[A-Za-z0-9\-._~!$&'()*+,;=]+$/;
const PORT = /^[1-9][0-9]{0,4}$/;

/** Unreserved escapes decoded once, the hex of the others in upper case. */
function settle(text) {
  return text.replace(/%([0-9A-Fa-f]{2})/g, (whole, hex) => {
    const c = String.fromCharCode(parseInt(hex, 16));
    return UNRESERVED.test(c) ? c : whole.toUpperCase();
  });
}

const isDots = (segment) => segment === '.' || segment === '..';

/** `{canonical, origin}`, or null where the text is no such URL. */
export function canonicalUrl(text) {
  const m = /^https:\/\/([^/?#]*)([^?#]*)(\?[^#]*)?(#.*)?$/is.exec(text);
  if (m === null) return null;
  const [, authority, path, query = '', fragment = '#'] = m;
  if (!PATH.test(path) || !QUERY.test(query) || !QUERY.test(fragment.slice(1))) return null;
  const [host, port, more] = authority.split(':');
  if (more !== undefined || !HOST.test(host)) return null;
  if (host.split('.').includes('')) return null;
  if (port !== undefined && (!PORT.test(port) || Number(port) > 65535)) return null;
  const settled = settle(path) || '/';
  if (settled.split('/').some(isDots)) return null;
  const origin = `https://${host.toLowerCase()}${port === undefined || port === '443' ? '' : `:${port}`}`;
  return { canonical: origin + settled + settle(query), origin };
}

/** Whether the text is an origin in its canonical spelling. */
export function isOrigin(text) {
  const url = canonicalUrl(text);
  return url !== null && url.origin === text;
}

/** Parses a prefix into text and placeholders: `[text | {field, slashes}, …]`, or null. */
export function parsePrefix(text, origins) {
  if (!origins.some((origin) => text.startsWith(`${origin}/`))) return null;
  const parts = [];
  for (const piece of text.split(/(\{[^{}]*\})/)) {
    if (piece.startsWith('{') && piece.endsWith('}') && piece.length > 1) {
      const slashes = piece[1] === '+';
      parts.push({ field: piece.slice(slashes ? 2 : 1, -1), slashes });
    } else if (piece !== '') {
      parts.push(piece);
    }
  }
  // The text around the placeholders is canonical as it stands, or it could
  // never begin a canonical URL. A letter stands in for each placeholder.
  const sample = parts.map((p) => (typeof p === 'string' ? p : 'x')).join('');
  const url = canonicalUrl(sample);
  return url !== null && url.canonical === sample ? parts : null;
}

const encode = (text) =>
  Array.from(Buffer.from(text, 'utf8'), (b) => {
    const c = String.fromCharCode(b);
    return UNRESERVED.test(c) ? c : `%${b.toString(16).toUpperCase().padStart(2, '0')}`;
  }).join('');

/** Whether the prefix, filled with text from `fieldText` (null: left out), begins the URL. */
export function beginsWith(parts, fieldText, canonical) {
  let filled = '';
  for (const part of parts) {
    if (typeof part === 'string') {
      filled += part;
      continue;
    }
    const text = fieldText(part.field);
    if (text === null) return false;
    if (part.slashes) {
      const segments = text.split('/');
      if (segments.some((s) => s === '' || isDots(s))) return false;
      filled += segments.map(encode).join('/');
    } else {
      filled += encode(text);
    }
  }
  if (!canonical.startsWith(filled)) return false;
  if (typeof parts.at(-1) === 'string') return true;
  const next = canonical[filled.length];
  return next === undefined || next === '/' || next === '?';
}
