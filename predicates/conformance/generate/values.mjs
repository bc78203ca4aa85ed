// Documents from small alphabets, their paths, and their many spellings.
// A value is null, a boolean, a string, a Raw number, an array or an Obj of
// pairs, so that a key can be repeated and a number keeps its spelling.

import { decimal, plain } from '../number.mjs';
import { formatPointer } from '../pointer.mjs';

export class Raw {
  constructor(text) {
    this.text = text;
  }
}

export class Obj {
  constructor(pairs) {
    this.pairs = pairs;
  }
}

export const raw = (text) => new Raw(String(text));
export const obj = (members) => new Obj(Object.entries(members).filter(([, v]) => v !== undefined));

// Literals that compile, in several spellings.
export const GOOD_NUMBERS = [
  '0', '-0', '0.0', '1', '1.0', '1e0', '10e-1', '2', '-1', '-1.0', '3', '0.1', '0.10', '1e-1', '1.5', '15e-1', '100',
  '1e2', '1E+2', '9007199254740991', '-9007199254740991', '9.007199254740991e15', '0.3', '5e-324', '1e-7', '1.25',
];
const WILD_NUMBERS = [
  '9007199254740992', '9007199254740993', '-9007199254740992', '1e400', '1E400', '-1e400', '1e-400', '1e16', '1.5e300',
  '1e99999999999999999999', '1e-99999999999999999999', '0e99999999999999999999', '10e399', '0.30000000000000004',
  '0.1000000000000000055511151231257827', '0.10000000000000000001', '1.00000000000000000001', '123456789012345678901234567890',
  '9007199254740991.5', '4503599627370497.5', '1.7976931348623157e-300', '2.4703282292062327e-324', '1e21', '-12.5e-1',
];
const INSTANTS = [
  '2026-01-01T00:00:00Z', '2026-01-01t00:00:00z', '2026-01-01T00:00:00.000Z', '2026-01-01T02:00:00+02:00',
  '2026-01-01T00:00:00-00:00', '2026-01-01T00:00:00.1234567891Z', '2026-01-01T00:00:00.123456789Z',
  '2025-12-31T23:59:59.999999999Z', '2025-12-31T23:59:60Z', '2025-12-31T23:59:60.5Z', '2016-12-31T15:59:60-08:00',
  '2017-01-01T01:29:60+01:30', '2015-06-30T23:59:60Z', '2026-01-01T23:58:59+23:59', '2026-01-01T00:00:01Z',
  '0000-02-29T00:00:00Z', '0000-01-01T00:00:00+00:01', '9999-12-31T23:59:59-00:01', '2024-02-29T12:00:00Z',
  '2000-02-29T00:00:00Z', '1969-12-31T23:59:59.25Z',
];
const NO_INSTANTS = [
  '2026-01-01', '2026-01-01 00:00:00Z', '2026-01-01T00:00:00', '2026-01-01T24:00:00Z', '2026-01-01T00:60:00Z',
  '2026-02-29T00:00:00Z', '1900-02-29T00:00:00Z', '2026-13-01T00:00:00Z', '2026-00-01T00:00:00Z', '2026-01-00T00:00:00Z',
  '2026-04-31T00:00:00Z', '2026-01-01T00:00:00.Z', '2026-01-01T00:00:00,5Z', '2026-01-01T00:00:00+24:00',
  '2026-01-01T00:00:00+00:60', '2026-01-01T00:00:00+0000', '2026-01-01T23:59:60Z', '2026-06-30T23:58:60Z',
  '2026-12-31T23:59:60+01:00', '2026-12-31T23:59:61Z', '2026-01-01T00:00:00Z\n', ' 2026-01-01T00:00:00Z',
  '+2026-01-01T00:00:00Z', '26-01-01T00:00:00Z', '\u06602026-01-01T00:00:00Z', '2026-01-01T00:00:00\u221201:00',
];
const STRINGS = [
  '', 'a', 'b', 'ab', 'abc', 'A', 'ba', 'open', 'closed', 'opened', '\u00e9', 'e\u0301', '\u{1f600}', '\u{1f601}', 'a\u{1f600}b',
  'a/b', '~', 'a\u0000', 'a\nb', '\n', ' ', '\ufeffa', '1', 'true', 'null', '\u00a0', '\ufb33', '\u00df', 'ss', '_a1', 'a-b',
];
const KEYS = ['a', 'b', 'c', 'k', '0', '1', '01', '', '*', 'x/y', '~', '~1', '\u00e9', '\u{1f600}', '\ufb33', '__proto__', 'length', 'a b'];

export const number = (r) => raw(r.oneIn(3) ? r.pick(WILD_NUMBERS) : r.pick(GOOD_NUMBERS));
export const goodNumber = (r) => raw(r.pick(GOOD_NUMBERS));
export const string = (r) => (r.oneIn(5) ? r.pick(r.oneIn(3) ? NO_INSTANTS : INSTANTS) : r.pick(STRINGS));
export const instant = (r) => r.pick(INSTANTS);
export const noInstant = (r) => r.pick(NO_INSTANTS);
export const anyInstant = (r) => (r.oneIn(3) ? noInstant(r) : instant(r));

export function scalar(r, num = number) {
  const n = r.below(10);
  if (n < 4) return string(r);
  if (n < 7) return num(r);
  if (n < 9) return r.oneIn(2);
  return null;
}

export function value(r, depth) {
  const n = depth <= 0 ? 0 : r.below(10);
  if (n < 5) return scalar(r);
  if (n < 8) return object(r, depth - 1);
  return Array.from({ length: r.below(4) }, () => value(r, depth - 1));
}

export function object(r, depth) {
  const keys = new Set(Array.from({ length: r.below(5) }, () => r.pick(r.oneIn(2) ? KEYS.slice(0, 4) : KEYS)));
  return new Obj([...keys].map((key) => [key, value(r, depth)]));
}

export const document = (r) => (r.oneIn(12) ? value(r, 2) : object(r, 3));

/** Every `[tokens, value]` of a document, the root first. */
export function paths(v, tokens = []) {
  const out = [[tokens, v]];
  if (Array.isArray(v)) for (const [i, item] of v.entries()) out.push(...paths(item, [...tokens, String(i)]));
  if (v instanceof Obj) for (const [key, item] of v.pairs) out.push(...paths(item, [...tokens, key]));
  return out;
}

const ODD_TOKENS = [...KEYS, '-', '00', '+0', '0x1', '-1', '2', '3', '18446744073709551616', '4294967296', '\u0661', '1.0', ' 0'];

/** A pointer of the document's own, often bent. */
export function pointer(r, doc) {
  let tokens = [...r.pick(paths(doc))[0]];
  if (r.oneIn(3)) {
    const n = r.below(4);
    if (n === 0) tokens = tokens.slice(0, -1);
    else if (n === 1) tokens.push(r.pick(ODD_TOKENS));
    else if (n === 2 && tokens.length > 0) tokens[r.below(tokens.length)] = r.pick(ODD_TOKENS);
    else tokens = [...tokens, r.pick(ODD_TOKENS), r.pick(ODD_TOKENS)];
  }
  return formatPointer(tokens);
}

export const BAD_POINTERS = ['a', '#/a', '/a~', '/a~2', '/~', 'a/b', ' /a', '/a/~3/b'];

/** A number in another spelling of the same value. */
export function respellNumber(r, text) {
  const d = decimal(text);
  const short = plain(d, 40);
  if (d.digits === '') return r.pick(['0', '-0', '0.0', '0e5', '-0.00E-7', '0e400']);
  const sign = d.neg ? '-' : '';
  const spellings = [`${sign}${d.digits}e${d.exp}`, `${sign}${d.digits}00E${d.exp - 2n}`];
  spellings.push(`${sign}0.${d.digits}e${d.exp + BigInt(d.digits.length)}`, `${sign}0.00${d.digits}E${d.exp + BigInt(d.digits.length + 2)}`);
  if (short !== null) spellings.push(short, short.includes('.') ? `${short}0` : `${short}.0`, `${short}e0`, `${short}E+00`);
  return r.pick(spellings);
}

function spellString(r, text, wild) {
  if (!wild) return JSON.stringify(text);
  let out = '"';
  for (const c of text) {
    const plainSpelling = JSON.stringify(c).slice(1, -1);
    if (r.oneIn(3)) {
      for (let i = 0; i < c.length; i += 1) {
        const hex = c.charCodeAt(i).toString(16).padStart(4, '0');
        out += `\\u${r.oneIn(2) ? hex.toUpperCase() : hex}`;
      }
    } else {
      out += c === '/' && r.oneIn(2) ? '\\/' : plainSpelling;
    }
  }
  return `${out}"`;
}

const blank = (r, wild) => (wild && r.oneIn(3) ? r.pick([' ', '\n', '\t', '\r\n', '  ']) : '');

/** JSON text. `wild` respells: blanks, escapes, key order and numbers, never the value. */
export function render(v, r = null, wild = false) {
  const gap = () => blank(r, wild);
  if (v instanceof Raw) return wild && r.oneIn(2) ? respellNumber(r, v.text) : v.text;
  if (typeof v === 'string') return spellString(r, v, wild);
  if (Array.isArray(v)) return `[${gap()}${v.map((item) => render(item, r, wild)).join(`${gap()},${gap()}`)}${gap()}]`;
  if (v instanceof Obj) {
    const pairs = wild ? r.shuffle(v.pairs) : v.pairs;
    const members = pairs.map(([key, item]) => `${spellString(r, key, wild)}${gap()}:${gap()}${render(item, r, wild)}`);
    return `{${gap()}${members.join(`${gap()},${gap()}`)}${gap()}}`;
  }
  return JSON.stringify(v);
}

export const respell = (v, r) => blank(r, true) + render(v, r, true) + blank(r, true);

/** The document with one key repeated somewhere, or null where it has no member. */
export function withRepeatedKey(v, r) {
  const holders = paths(v).filter(([, item]) => item instanceof Obj && item.pairs.length > 0);
  if (holders.length === 0) return null;
  const target = r.pick(holders)[1];
  const copy = (item) => {
    if (Array.isArray(item)) return item.map(copy);
    if (!(item instanceof Obj)) return item;
    const pairs = item.pairs.map(([key, inner]) => [key, copy(inner)]);
    if (item === target) pairs.splice(r.below(pairs.length + 1), 0, [r.pick(pairs)[0], value(r, 1)]);
    return new Obj(pairs);
  };
  return copy(v);
}
