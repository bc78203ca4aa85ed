// Exact decimal numbers. A number is a sign, digits without outer zeros and a
// power of ten, so that an exponent of any size is compared, never expanded.
// Binary64 appears in one place alone: to ask whether it carries the value.

const SAFE = 9007199254740991n; // 2^53 - 1

/** Reads JSON number text. The value is digits * 10^exp; zero has no digits. */
export function decimal(text) {
  const m = /^(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/.exec(text);
  const fraction = m[3] ?? '';
  const all = m[2] + fraction;
  let start = 0;
  let end = all.length;
  while (start < end && all[start] === '0') start += 1;
  while (end > start && all[end - 1] === '0') end -= 1;
  if (start === end) return { neg: false, digits: '', exp: 0n };
  const exp = BigInt(m[4] ?? '0') - BigInt(fraction.length) + BigInt(all.length - end);
  return { neg: m[1] === '-', digits: all.slice(start, end), exp };
}

const magnitude = (d) => d.exp + BigInt(d.digits.length);

/** -1, 0 or 1. */
export function compare(a, b) {
  const signA = a.digits === '' ? 0 : a.neg ? -1 : 1;
  const signB = b.digits === '' ? 0 : b.neg ? -1 : 1;
  if (signA !== signB) return signA < signB ? -1 : 1;
  if (signA === 0) return 0;
  const magA = magnitude(a);
  const magB = magnitude(b);
  if (magA !== magB) return (magA < magB ? -1 : 1) * signA;
  // Equal magnitude: both are 0.<digits> at one scale, so text order is value order.
  if (a.digits === b.digits) return 0;
  return (a.digits < b.digits ? -1 : 1) * signA;
}

export const equal = (a, b) => compare(a, b) === 0;

export const isInteger = (d) => d.exp >= 0n;

/** Whether an integer lies within plus or minus 2^53 - 1. */
export function isSafe(d) {
  if (magnitude(d) > 16n) return false;
  return d.digits === '' || BigInt(d.digits) * 10n ** d.exp <= SAFE;
}

/** Whether the shortest spelling of the nearest binary64 is this very value. */
export function isCarried(d) {
  const near = nearest(d);
  return Number.isFinite(near) && equal(decimal(String(near)), d);
}

/** The nearest binary64. */
export function nearest(d) {
  return d.digits === '' ? 0 : Number(`${d.neg ? '-' : ''}${d.digits}e${d.exp}`);
}

/** A number literal of a declaration: a safe integer or a carried fraction. */
export const isLiteral = (d) => (isInteger(d) ? isSafe(d) : isCarried(d));

/** Plain decimal text of at most `limit` characters, else null. The length is found first. */
export function plain(d, limit) {
  if (d.digits === '') return '0';
  const sign = d.neg ? '-' : '';
  const count = BigInt(d.digits.length);
  const mag = magnitude(d);
  let length = BigInt(sign.length);
  if (d.exp >= 0n) length += mag;
  else if (mag > 0n) length += count + 1n;
  else length += 2n - mag + count;
  if (length > BigInt(limit)) return null;
  if (d.exp >= 0n) return sign + d.digits + '0'.repeat(Number(d.exp));
  if (mag > 0n) return `${sign}${d.digits.slice(0, Number(mag))}.${d.digits.slice(Number(mag))}`;
  return `${sign}0.${'0'.repeat(Number(-mag))}${d.digits}`;
}
