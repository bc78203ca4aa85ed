// The JSON parser of the twin: bytes in, a tree with exact numbers out. It
// refuses what the contract calls malformed, notes repeated keys instead of
// choosing one, and never makes a binary float. JSON.parse is not used on any
// document, declaration or case line.

import { decimal } from './number.mjs';

export class Malformed extends Error {}

export class Num {
  #dec = null;
  constructor(text) {
    this.kind = 'number';
    this.text = text;
  }
  get dec() {
    this.#dec ??= decimal(this.text);
    return this.#dec;
  }
}

export class Str {
  constructor(value) {
    this.kind = 'string';
    this.value = value;
  }
}

export class Bool {
  constructor(value) {
    this.kind = 'boolean';
    this.value = value;
  }
}

export class Null {
  kind = 'null';
}

export class Arr {
  constructor(items) {
    this.kind = 'array';
    this.items = items;
  }
}

/** `members` keeps the first of a repeated key; `repeated` is the first key seen twice. */
export class Obj {
  constructor() {
    this.kind = 'object';
    this.members = new Map();
    this.repeated = null;
  }
  get(key) {
    return this.members.get(key);
  }
}

export const isScalar = (v) => v.kind !== 'object' && v.kind !== 'array';

export const escapeToken = (key) => key.replaceAll('~', '~0').replaceAll('/', '~1');

/** Strict UTF-8 (RFC 3629): no overlong form, no surrogate, nothing past U+10FFFF. */
export function isUtf8(bytes) {
  const tail = (i) => i < bytes.length && (bytes[i] & 0xc0) === 0x80;
  for (let i = 0; i < bytes.length; ) {
    const b = bytes[i];
    if (b < 0x80) {
      i += 1;
    } else if (b >= 0xc2 && b <= 0xdf) {
      if (!tail(i + 1)) return false;
      i += 2;
    } else if (b >= 0xe0 && b <= 0xef) {
      if (!tail(i + 1) || !tail(i + 2)) return false;
      if (b === 0xe0 && bytes[i + 1] < 0xa0) return false;
      if (b === 0xed && bytes[i + 1] > 0x9f) return false;
      i += 3;
    } else if (b >= 0xf0 && b <= 0xf4) {
      if (!tail(i + 1) || !tail(i + 2) || !tail(i + 3)) return false;
      if (b === 0xf0 && bytes[i + 1] < 0x90) return false;
      if (b === 0xf4 && bytes[i + 1] > 0x8f) return false;
      i += 4;
    } else {
      return false;
    }
  }
  return true;
}

const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const RAW = /[^"\\\u0000-\u001f]+/y;
const BLANK = /[ \t\n\r]*/y;
const SIMPLE = { '"': '"', '\\': '\\', '/': '/', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };

class Parser {
  constructor(text, maxDepth) {
    this.text = text;
    this.at = 0;
    this.maxDepth = maxDepth;
    this.depth = 0;
    this.path = [];
    this.repeated = null;
  }

  fail() {
    throw new Malformed(`malformed at ${this.at}`);
  }

  blanks() {
    BLANK.lastIndex = this.at;
    BLANK.exec(this.text);
    this.at = BLANK.lastIndex;
  }

  word(word, value) {
    if (!this.text.startsWith(word, this.at)) this.fail();
    this.at += word.length;
    return value;
  }

  open() {
    this.at += 1;
    this.depth += 1;
    if (this.depth > this.maxDepth) this.fail();
    this.blanks();
  }

  close() {
    this.at += 1;
    this.depth -= 1;
  }

  value() {
    switch (this.text[this.at]) {
      case '{':
        return this.object();
      case '[':
        return this.array();
      case '"':
        return new Str(this.string());
      case 't':
        return this.word('true', new Bool(true));
      case 'f':
        return this.word('false', new Bool(false));
      case 'n':
        return this.word('null', new Null());
      default:
        return this.number();
    }
  }

  number() {
    NUMBER.lastIndex = this.at;
    const m = NUMBER.exec(this.text);
    if (m === null) this.fail();
    this.at = NUMBER.lastIndex;
    return new Num(m[0]);
  }

  hex4() {
    const hex = this.text.slice(this.at, this.at + 4);
    if (!/^[0-9a-fA-F]{4}$/.test(hex)) this.fail();
    this.at += 4;
    return parseInt(hex, 16);
  }

  escape() {
    const c = this.text[this.at];
    this.at += 1;
    if (c !== 'u') {
      if (c === undefined || !Object.hasOwn(SIMPLE, c)) this.fail();
      return SIMPLE[c];
    }
    const high = this.hex4();
    if (high < 0xd800 || high > 0xdfff) return String.fromCharCode(high);
    if (high > 0xdbff || !this.text.startsWith('\\u', this.at)) this.fail();
    this.at += 2;
    const low = this.hex4();
    if (low < 0xdc00 || low > 0xdfff) this.fail();
    return String.fromCharCode(high, low);
  }

  string() {
    this.at += 1;
    let out = '';
    for (;;) {
      RAW.lastIndex = this.at;
      const m = RAW.exec(this.text);
      if (m !== null) {
        out += m[0];
        this.at = RAW.lastIndex;
      }
      const c = this.text[this.at];
      if (c === '"') break;
      if (c !== '\\') this.fail();
      this.at += 1;
      out += this.escape();
    }
    this.at += 1;
    return out;
  }

  array() {
    this.open();
    const items = [];
    if (this.text[this.at] === ']') {
      this.close();
      return new Arr(items);
    }
    for (;;) {
      this.path.push(String(items.length));
      items.push(this.value());
      this.path.pop();
      this.blanks();
      const c = this.text[this.at];
      if (c === ']') break;
      if (c !== ',') this.fail();
      this.at += 1;
      this.blanks();
    }
    this.close();
    return new Arr(items);
  }

  object() {
    this.open();
    const out = new Obj();
    if (this.text[this.at] === '}') {
      this.close();
      return out;
    }
    for (;;) {
      if (this.text[this.at] !== '"') this.fail();
      const key = this.string();
      this.path.push(key);
      const again = out.members.has(key);
      if (again) {
        out.repeated ??= key;
        this.repeated ??= this.path.map((t) => `/${escapeToken(t)}`).join('');
      }
      this.blanks();
      if (this.text[this.at] !== ':') this.fail();
      this.at += 1;
      this.blanks();
      const value = this.value();
      if (!again) out.members.set(key, value);
      this.path.pop();
      this.blanks();
      const c = this.text[this.at];
      if (c === '}') break;
      if (c !== ',') this.fail();
      this.at += 1;
      this.blanks();
    }
    this.close();
    return out;
  }
}

/**
 * Parses bytes. Gives `{root, repeated}`, where `repeated` is the pointer of
 * the first repeated key in the order of the text, or null. Throws Malformed.
 */
export function parse(bytes, maxDepth = 128) {
  if (!isUtf8(bytes)) throw new Malformed('not UTF-8');
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8');
  const parser = new Parser(text, maxDepth);
  parser.blanks();
  const root = parser.value();
  parser.blanks();
  if (parser.at !== text.length) parser.fail();
  return { root, repeated: parser.repeated };
}

/** Declarations and case lines are ours: their depth is bounded only to keep the stack. */
export const parseText = (text) => parse(Buffer.from(text, 'utf8'), 1024);

/** One line of JSON of a tree, or of plain values that hold trees; numbers keep their text. */
export function stringify(v) {
  if (v === null || typeof v === 'boolean' || typeof v === 'string') return JSON.stringify(v);
  if (v instanceof Num) return v.text;
  if (v instanceof Str || v instanceof Bool) return JSON.stringify(v.value);
  if (v instanceof Null) return 'null';
  if (v instanceof Arr) return `[${v.items.map(stringify).join(',')}]`;
  if (Array.isArray(v)) return `[${v.map(stringify).join(',')}]`;
  const entries = v instanceof Obj || v instanceof Map ? [...(v.members ?? v)] : Object.entries(v);
  const shown = entries.filter(([, value]) => value !== undefined);
  return `{${shown.map(([k, value]) => `${JSON.stringify(k)}:${stringify(value)}`).join(',')}}`;
}
