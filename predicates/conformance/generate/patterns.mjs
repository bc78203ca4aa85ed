// Patterns from a grammar, valid and invalid, and the texts they are run on.

const LITERALS = ['a', 'b', 'ab', '1', '_', '-', ' ', '/', '\u00e9', '\u{1f600}', '&', '~', '@', '#', ',', '<', '!', '=', '\n'];
const ESCAPES = [...'^$\\.*+?()[]{}|/'].map((c) => `\\${c}`).concat(['\\d', '\\D', '\\w', '\\W', '\\s', '\\S', '\\t', '\\n', '\\r']);
const ASSERTIONS = ['^', '$', '\\b', '\\B'];
const QUANTIFIERS = ['*', '+', '?', '{0}', '{1}', '{2}', '{0,}', '{1,}', '{2,}', '{0,1}', '{1,2}', '{0,0}', '{2,3}'];
const CLASS_ITEMS = [
  'a', 'b', '1', '_', ' ', '\u00e9', '\u{1f600}', 'a-c', '0-9', 'A-Z', '\u00e0-\u00ff', '\u{1f600}-\u{1f605}', '\\d', '\\w', '\\s', '\\D',
  '\\W', '\\S', '\\-', '\\]', '\\[', '\\^', '\\n', '.', '$', '(', '|', '*', '{', '}', '?', '/', '&', '~', '+-\\-', '\\--a', '\\\\', '!-/',
];
const REFUSED = [
  '(?=a)', '(?!a)', '(?<=a)', '(?<!a)', '(a)\\1', '\\k<n>', '(?i)', '(?i:a)', '(?<n>a)', '(?P<n>a)', '\\p{L}', '\\P{L}', '\\pL',
  '[[:alpha:]]', '[a&&b]', '[a--b]', '[a~~b]', '[[a]]', '[a[b]', '\\x41', '\\u0041', '\\u{41}', '\\cA', '\\f', '\\v', '\\0', '\\e',
  '\\A', '\\z', '\\Z', '\\G', '\\Q', '\\-', '\\@', '\\ ', '\\"', '\\\u00e9', '[\\b]', '[\\B]', '[\\@]', '^*', '$+', '\\b?', '\\B{2}', 'a**',
  'a+*', 'a??+', 'a?+', 'a{2}{3}', 'a{2}*', 'a*???', '|*', '(*a)', '(?:+)', '{2}', 'a{', 'a}', 'a{}', 'a{,3}', 'a{,}', 'a{01}', 'a{1,02}',
  'a{00}', 'a{ 1}', 'a{1,2', 'a{x}', 'a{3,2}', 'a{101}', 'a{0,101}', 'a{101,}', 'a{1000000000000000000000}', ']', '}', '[]', '[^]', '[]a]',
  '[^]a]', '[z-a]', '[a-\\d]', '[\\d-z]', '[a-c-e]', '[a-b-]]', '(', ')', '(a', '(?', '(?:', '(?a)', '[a', '[a-', '[', '\\', '[\\',
];

function characterClass(r) {
  const negated = r.oneIn(3) ? '^' : '';
  const items = Array.from({ length: 1 + r.below(3) }, () => r.pick(CLASS_ITEMS));
  if (r.oneIn(6)) items.unshift('-');
  if (r.oneIn(6)) items.push('-');
  if (r.oneIn(8)) items.push('^');
  return `[${negated}${items.join('')}]`;
}

function atom(r, depth) {
  const n = r.below(12);
  if (n < 5) return r.pick(LITERALS);
  if (n < 7) return r.pick(ESCAPES);
  if (n < 9) return characterClass(r);
  if (n < 10) return '.';
  return depth > 0 ? `${r.oneIn(2) ? '(' : '(?:'}${alternation(r, depth - 1)})` : 'a';
}

function branch(r, depth) {
  let out = '';
  for (let i = r.below(4); i > 0; i -= 1) {
    if (r.oneIn(7)) {
      out += r.pick(ASSERTIONS);
      continue;
    }
    out += atom(r, depth);
    if (r.oneIn(3)) out += r.pick(QUANTIFIERS) + (r.oneIn(4) ? '?' : '');
  }
  return out;
}

function alternation(r, depth) {
  return Array.from({ length: r.oneIn(3) ? 1 + r.below(3) : 1 }, () => branch(r, depth)).join('|');
}

/** Most of these compile (a long literal before a quantifier repeats its last character alone). */
export function pattern(r) {
  const body = alternation(r, 2);
  const n = r.below(5);
  if (n === 0) return `^${body}`;
  if (n === 1) return `^(?:${body})$`;
  return body;
}

export const badPattern = (r) => branch(r, 1) + r.pick(REFUSED) + (r.oneIn(2) ? branch(r, 1) : '');

const SUBJECT = ['a', 'b', 'ab', '1', '_', '-', ' ', '\n', '\t', '\u000b', '\u0085', '\u00a0', '\u2028', '\u00e9', '\u{1f600}', '\u0661', '.', ']', '^', '/', 'A', '&'];

export const subject = (r) => Array.from({ length: r.below(7) }, () => r.pick(SUBJECT)).join('');

/** Patterns at a bound and one past it. */
export function boundPattern(r) {
  const past = r.oneIn(2);
  switch (r.below(9)) {
    case 0:
      return 'a'.repeat(past ? 1025 : 1024);
    case 1:
      return `${'\u00e9'.repeat(511)}${past ? 'abc' : 'ab'}`;
    case 2:
      return `^a{${past ? 101 : 100}}$`;
    case 3:
      return past ? '(?:(?:a{13}){11}){7}' : '(?:(?:a{10}){10}){10}';
    case 4:
      return `${'(?:a{100}){10}'.repeat(10)}${past ? 'b' : ''}`;
    case 5:
      return `(?:[\u00e9-\u00ea]{100}){5}${past ? '$' : ''}`;
    case 6:
      return `${'(?:\u00e9{100}){10}'.repeat(2)}(?:\u00e9{100,}){5}${past ? '\\d' : ''}`;
    case 7:
      return `(?:.{100}){4}(?:\\W{10}){1}(?:[^a]?){1,1}${'b'.repeat(past ? 17 : 16)}`;
    default: {
      const depth = past ? 200 : 511;
      return `${'('.repeat(depth)}a${')'.repeat(depth)}`;
    }
  }
}
