// Documents as bytes, right and wrong, and pointers, URLs, canonical forms and
// event ids over them.

import { Obj, obj, document, GOOD_NUMBERS, pointer, BAD_POINTERS, raw, render, respell, scalar, value, withRepeatedKey } from './values.mjs';
import { url } from './urls.mjs';

const BAD_BYTES = [
  [0xff], [0xc0, 0xaf], [0xe0, 0x80, 0xaf], [0xed, 0xa0, 0x80], [0xed, 0xbf, 0xbf], [0xf0, 0x8f, 0xbf, 0xbf], [0xf4, 0x90, 0x80, 0x80], [0xc3], [0x80], [0xe2, 0x82],
  [0xf8, 0x88, 0x80, 0x80, 0x80], [0xf0, 0x9f, 0x98], [0xc1, 0xbf], [0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80],
];
const GOOD_BYTES = [[0xc2, 0x80], [0xed, 0x9f, 0xbf], [0xee, 0x80, 0x80], [0xf4, 0x8f, 0xbf, 0xbf], [0xef, 0xbf, 0xbe], [0xef, 0xbb, 0xbf], [0x7f], [0xe0, 0xa0, 0x80], [0xf0, 0x90, 0x80, 0x80]];
const ODD_STRINGS = [
  '"\\ud83d"', '"\\ude00"', '"\\ude00\\ud83d"', '"\\ud83d\\ud83d\\ude00"', '"\\ud83dx"', '"\\ud83d\\u0041"', '"\\ud83d\\n"', '"\\uD83D\\uDE00"', '"\\u12"', '"\\u00g0"', '"\\x41"', '"\\a"',
  '"\\U0041"', "'a'", '"a\nb"', '"a\tb"', '"\u0000"', '"\u001f"', '"\u007f"', '"\\u0000"', '"\\/"', '"\\\'"', '"\\"', '"', '"\\ud800\\udc00"', '"\\udbff\\udfff"', '"\\uFFFE"', '"\\uFEFF"',
];
const ODD_NUMBERS = ['01', '-', '+1', '.5', '1.', '1e', '1e+', '1E-', '-01', '00', '0x1', '1_0', 'NaN', 'Infinity', '-Infinity', '1.e1', '--1', '0e0', '-0.0e-0', '1e1.5', '\u0661', '1E400', '0.1e+007'];
const ODD_TEXTS = [
  '', ' ', '\n\t\r ', '\ufeff{}', '\ufeff', '{}\u0000', '{}x', '{}{}', '{}//c', '/*c*/{}', '\u00a0{}', '\f{}', '\u000b1', '{,}', '{"a":1,}', '[1,]', '[,1]', '[1 2]', '{"a" 1}', '{"a"}', '{a:1}', '{"a":}',
  '{1:1}', '[', '{', ']', '}', '[}', '{]', 'True', 'nul', 'truee', 'undefined', '[1],', ' {} ', '\r\n[]\r\n', 'null', '{"a":1;"b":2}', "{'a':1}", '[1][2]', '"a""b"', '\u2028{}',
];

function deep(r, depth) {
  let open = '';
  let close = '';
  for (let i = 0; i < depth; i += 1) {
    if (r.oneIn(2)) {
      open += '[';
      close = `]${close}`;
    } else {
      open += '{"a":';
      close = `}${close}`;
    }
  }
  return `${open}${r.oneIn(2) || close[0] === '}' ? '1' : ''}${close}`;
}

function documentCase(r) {
  const doc = document(r);
  const text = render(doc, r, r.oneIn(2));
  switch (r.below(10)) {
    case 0:
      return { document: r.pick(ODD_TEXTS) };
    case 1: {
      const odd = r.pick(r.oneIn(2) ? ODD_STRINGS : ODD_NUMBERS);
      return { document: r.pick([odd, `[${odd}]`, `{"a":${odd}}`, odd[0] === '"' ? `{${odd}:1}` : `[1,${odd}]`, `{"a":1,"a":${odd}}`]) };
    }
    case 2: {
      const bytes = Buffer.from(r.pick(r.oneIn(3) ? GOOD_BYTES : BAD_BYTES));
      const parts = r.pick([['"', '"'], ['"a', 'b"'], ['{"', '":1}'], ['', ''], ['{}', ''], ['', '{}'], ['["', '","a"]']]);
      return { document_base64: Buffer.concat([Buffer.from(parts[0]), bytes, Buffer.from(parts[1])]).toString('base64') };
    }
    case 3: {
      const bytes = Buffer.from(text, 'utf8');
      return { document_base64: bytes.subarray(0, r.below(bytes.length + 1)).toString('base64') };
    }
    case 4: {
      const bytes = Buffer.from(text, 'utf8');
      bytes[r.below(bytes.length)] = r.below(256);
      return { document_base64: bytes.toString('base64') };
    }
    case 5:
      return r.oneIn(4) ? { document: deep(r, r.pick([127, 128, 129, 130])) } : { document: text };
    case 6:
    case 7: {
      const twice = withRepeatedKey(doc, r);
      return twice === null ? { document: text } : { document: render(twice), must_be: 'ambiguous-evidence' };
    }
    case 8: {
      const once = withRepeatedKey(doc, r);
      const again = once === null ? null : withRepeatedKey(once, r);
      return { document: again === null ? text : respell(again, r) };
    }
    default:
      return { document: text };
  }
}

// What a binary64 has: the canonicalizer is asked for nothing else.
const BINARY = [...GOOD_NUMBERS, '1e21', '1e20', '123456789012345678901234567890', '1e-6', '1e-7', '0.000001', '4.50', '1.7976931348623157e308', '2.2250738585072014e-308', '9007199254740993', '0.1000000000000000055511151231257827', '1e23', '-1e-400', '333333333.33333329', '295147905179352830000', '5e-325'];

function carried(v, r) {
  if (Array.isArray(v)) return v.map((x) => carried(x, r));
  if (v instanceof Obj) return new Obj(v.pairs.map(([k, x]) => [k, carried(x, r)]));
  return v !== null && typeof v === 'object' ? raw(r.pick(BINARY)) : v;
}

function event(r) {
  const fields = new Obj(['f', 'z', '\u{1f600}', '\ufb33', 'number'].filter(() => r.oneIn(2)).map((key) => [key, r.oneIn(4) ? [carried(scalar(r), r), 'b'] : carried(scalar(r) ?? 'x', r)]));
  const source = obj({
    profile: 'github-v1',
    profileDigest: `sha256:${'a'.repeat(64)}`,
    binding: r.pick(['b1', 'b2']),
    event: 'issues',
    delivery: r.pick(['d-1', 'd-1#0', 'caf\u00e9']),
    bodySha256: 'b'.repeat(64),
    receivedAt: r.oneIn(10) ? undefined : '2026-01-01T00:00:00Z',
    reprojects: r.oneIn(4) ? 'c'.repeat(64) : undefined,
    plan: r.oneIn(4) ? `sha256:${'d'.repeat(64)}` : undefined,
  });
  return obj({ apiVersion: 'github.com/gh-aw/connectors/v1', kind: 'CanonicalEvent', connector: 'github', trigger: 'issue', variant: r.oneIn(2) ? null : 'one', fields, source });
}

function eventCases(r) {
  const one = event(r);
  if (!r.oneIn(2)) return [{ kind: 'event-id', canonical_event: one }];
  // The receive time and the order of keys do not count.
  const later = new Obj(r.shuffle(one.pairs.map(([k, v]) => [k, k === 'source' ? new Obj(r.shuffle([...v.pairs.filter(([n]) => n !== 'receivedAt'), ['receivedAt', '2031-12-31T23:59:59Z']])) : v])));
  return [{ kind: 'event-id', canonical_event: one }, { kind: 'event-id', canonical_event: later, same_as: true }];
}

/** Cases about everything that is neither a predicate nor a trigger. */
export function otherCases(r) {
  const n = r.below(20);
  if (n < 8) return [{ kind: 'document', ...documentCase(r) }];
  if (n < 12) {
    const doc = document(r);
    return [{ kind: 'pointer', pointer: r.oneIn(10) ? r.pick(BAD_POINTERS) : pointer(r, doc), document: render(doc, r, r.oneIn(3)) }];
  }
  if (n < 16) return [{ kind: 'url', url: url(r) }];
  if (n < 18) {
    const doc = carried(value(r, 3), r);
    const one = { kind: 'jcs', document: render(doc) };
    return r.oneIn(2) ? [one] : [one, { kind: 'jcs', document: respell(doc, r), same_as: true }];
  }
  return eventCases(r);
}
