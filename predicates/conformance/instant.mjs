// RFC 3339 instants to the nanosecond, as the contract reads them: lower-case
// t and z, digits past the ninth cut, leap seconds by rule and not by table.

const FORM =
  /^([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))$/;
const DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

const isLeapYear = (y) => (y % 4 === 0 && y % 100 !== 0) || y % 400 === 0;

/** Days since 0000-03-01 of the proleptic Gregorian calendar. */
function dayNumber(year, month, day) {
  const y = month <= 2 ? year - 1 : year;
  const m = month <= 2 ? month + 9 : month - 3;
  const century = Math.floor(y / 100);
  return y * 365 + Math.floor(y / 4) - century + Math.floor(century / 4) + Math.floor((m * 153 + 2) / 5) + day - 1;
}

/** `{second, leap, nanos}`, ordered in that order of keys, or null where the text is no instant. */
export function parseInstant(text) {
  const m = FORM.exec(text);
  if (m === null) return null;
  const [year, month, day, hour, minute, second] = m.slice(1, 7).map(Number);
  if (month < 1 || month > 12 || hour > 23 || minute > 59 || second > 60) return null;
  const last = DAYS[month - 1] + (month === 2 && isLeapYear(year) ? 1 : 0);
  if (day < 1 || day > last) return null;
  let offset = 0;
  if (m[8] !== undefined) {
    const [oh, om] = [Number(m[9]), Number(m[10])];
    if (oh > 23 || om > 59) return null;
    offset = (oh * 60 + om) * (m[8] === '-' ? -1 : 1);
  }
  const nanos = Number((m[7] ?? '').slice(0, 9).padEnd(9, '0'));
  const minutes = dayNumber(year, month, day) * 1440 + hour * 60 + minute - offset;
  if (second === 60) {
    // The next minute must open 1 July or 1 January in UTC; year by year, no table.
    const next = minutes + 1;
    const years = [year - 1, year, year + 1, year + 2];
    const opens = years.some((y) => next === dayNumber(y, 7, 1) * 1440 || next === dayNumber(y, 1, 1) * 1440);
    if (!opens) return null;
    return { second: minutes * 60 + 59, leap: 1, nanos };
  }
  return { second: minutes * 60 + second, leap: 0, nanos };
}

export function compareInstants(a, b) {
  return a.second - b.second || a.leap - b.leap || a.nanos - b.nanos;
}
