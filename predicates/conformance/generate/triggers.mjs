// Whole triggers over small deliveries: variants, types, prefixes, resources,
// filters and bindings; faults one at a time; bounds at n and n+1.

import { leaf, predicate } from './predicates.mjs';
import { goodNumber, number, Obj, obj, raw, render, respell, scalar, string, value, withRepeatedKey } from './values.mjs';
import { url } from './urls.mjs';

const EVENTS = ['issues', 'issue_comment', 'push'];
const OWNERS = ['octo', 'octo/hello', 'a b', 'caf\u00e9', '..', '', '/hello', 'octo/..', 'octo//x', '.', 'a%2Fb', '~o', 'octo/'];
const ORIGINS = ['https://github.com', 'https://gitlab.com', 'https://github.com:8443', 'https://localhost'];
const PREFIXES = [
  'https://github.com/', 'https://github.com/{owner}', 'https://github.com/{owner}/', 'https://github.com/{+owner}', 'https://github.com/{+owner}/issues/',
  'https://github.com/{owner}/{name}', 'https://github.com/x{owner}', 'https://github.com/{n}', 'https://github.com/octo', 'https://github.com/{owner}?a=1', 'https://github.com/{flag}/{+owner}',
];

const set = (o, key, v) => {
  const pairs = o.pairs.filter(([k]) => k !== key);
  return new Obj(v === undefined ? pairs : [...pairs, [key, v]]);
};
const get = (o, key) => o.pairs.find(([k]) => k === key)?.[1];

/** A delivery; a calm one has what the fields want, so that the later steps are reached. */
function delivery(r, calm) {
  const odd = (n) => r.oneIn(calm ? n * 12 : n);
  const owner = calm && r.oneIn(2) ? 'octo/hello' : r.pick(OWNERS);
  const matching = () => `https://github.com/${owner}${r.pick(['', '/', '/issues/7', '?a=1', 'x', '-evil/1', '/hello', '#c', ''])}`;
  const listed = () => (odd(3) ? scalar(r) : r.pick(['a', 'b', raw(1), raw('1.0')]));
  const members = [
    ['k', odd(6) ? scalar(r) : raw(r.pick(['1', '1.0', '1e0']))],
    ['v', raw(r.pick([1, 2, 3]))],
    ['o', odd(6) ? scalar(r) : owner],
    ['s', odd(3) ? scalar(r) : r.oneIn(2) ? r.pick(['a', 'b']) : string(r)],
    ['n', odd(4) ? scalar(r) : odd(2) ? number(r) : goodNumber(r)],
    ['b', odd(5) ? scalar(r) : r.oneIn(2)],
    ['u', odd(8) ? scalar(r) : r.below(3) > 0 ? matching() : url(r)],
    ['l', odd(6) ? value(r, 1) : Array.from({ length: r.below(4) }, listed)],
    ['m', Array.from({ length: r.below(4) }, () => (odd(6) ? value(r, 1) : obj({ name: odd(6) ? scalar(r) : r.pick(['a', 'b', 'c']) })))],
    ['d', obj({ x: odd(2) ? value(r, 1) : scalar(r) })],
  ];
  return new Obj(r.shuffle(members).filter(() => !odd(14)));
}

const ODD_FIELDS = [['/d/x', null], ['/d/x/y', null], ['/l/0', null], ['/l/-', null], ['/l/*', 'integer'], ['/l/*', 'string'], ['/gone/*', null], ['/*', null], ['/*/name', null], ['/n', 'string'], ['/b', 'integer']];

/** An entry for a pointer that suits its type more often than not. */
function field(r, types, calm) {
  const [pointer, type] = r.pick([
    ['/s', 'string'], ['/o', 'string'], ['/n', 'integer'], ['/n', 'number'], ['/b', 'boolean'], ['/s', null], ['/n', null], ['/k', 'integer'],
    ['/l/*', null], ['/m/*/name', 'string'], ['/m/*/name', null], ['/o', null],
    ...(calm && !r.oneIn(8) ? [] : ODD_FIELDS),
  ]);
  const told = type !== null && r.oneIn(3);
  if (told) types.push(type);
  else types.push(null);
  const numeric = type === 'integer' || type === 'number';
  if (r.oneIn(3) && (type === null || told)) return pointer;
  return obj({
    pointer,
    type: told && !r.oneIn(4) ? undefined : (type ?? undefined),
    required: r.oneIn(2) ? r.oneIn(2) : undefined,
    as: numeric && r.oneIn(2) ? 'decimal-string' : undefined,
  });
}

const CHOICES = { state: ['/s', 'string'], size: ['/n', 'integer'], draft: ['/b', 'boolean'], score: ['/n', 'number'], label: ['/m/*/name', 'string'], item: ['/l/*', 'integer'] };

function chosenFor(r, type) {
  const one = () => {
    if (type === 'string') return r.oneIn(3) ? string(r) : r.pick(['a', 'b', 'open']);
    if (type === 'boolean') return r.oneIn(2);
    return type === 'integer' ? raw(r.pick(['1', '1.0', '2', '100', '1e2', '0'])) : goodNumber(r);
  };
  return r.oneIn(2) ? one() : Array.from({ length: 1 + r.below(3) }, one);
}

const matchOf = (r, calm) => {
  const keys = new Map([['/k', r.oneIn(3) ? [raw(1), 'x'] : raw(1)]]);
  if (r.oneIn(calm ? 40 : 4)) keys.set('/v', raw(r.pick([1, 2])));
  if (r.oneIn(calm ? 60 : 6)) keys.set(r.pick(['/b', '/o', '/gone', '/d', '/d/x/y', '/l/0', '']), scalar(r, goodNumber));
  return new Obj(r.shuffle([...keys]));
};

/** A predicate of two pointers: which of them is the deciding one is seen in `at`. */
function bothEnds(r) {
  const end = () => r.pick(['/k', '/s', '/gone', '/k/x', '/o', '/gone/x', '/v']);
  const p = r.oneIn(2) ? obj({ same: obj({ left: end(), right: end() }) }) : obj({ transition: obj({ from: end(), to: end() }) });
  return r.oneIn(3) ? obj({ not: p }) : p;
}

/** `{trigger, binding, event, filters}` that compiles, over the delivery. */
function declaration(r, doc, calm) {
  const names = r.shuffle(['f', 'g', 'n1', '\u00fc', 'a/b', '\u{1f600}', '\ufb33']).slice(0, 1 + r.below(3));
  const fields = [];
  const types = [];
  for (const name of names) {
    const told = [];
    const entry = field(r, told, calm);
    fields.push([name, entry]);
    if (told[0] !== null) types.push([name, told[0]]);
  }
  let trigger = obj({
    connector: r.pick(['github', 'a', 'x-1']),
    trigger: 'issue',
    verificationProfile: 'github-v1',
    nativeEvents: r.oneIn(3) ? ['issues', 'push'] : ['issues'],
    match: matchOf(r, calm),
  });
  const withUrl = r.oneIn(3);
  if (withUrl) {
    fields.push(['owner', obj({ pointer: '/o', type: 'string', required: r.oneIn(3) ? false : undefined })]);
    fields.push(['name', obj({ pointer: '/s', required: false })], ['n', obj({ pointer: '/n', type: r.pick(['integer', 'number']), required: false, as: r.oneIn(2) ? 'decimal-string' : undefined })]);
    fields.push(['flag', obj({ pointer: '/b', type: 'boolean', required: false })]);
    const told = r.oneIn(5);
    fields.push(['url', obj({ pointer: '/u', type: told ? undefined : 'url', prefix: r.oneIn(3) ? undefined : r.pick(PREFIXES), required: r.oneIn(4) ? false : undefined })]);
    if (told) types.push(['url', 'url']);
    trigger = set(trigger, 'resourceOrigins', [ORIGINS[0], ...ORIGINS.slice(1).filter(() => r.oneIn(2))]);
  }
  trigger = set(trigger, 'normalize', new Obj(r.shuffle(fields)));
  if (types.length > 0) trigger = set(trigger, 'types', new Obj(types));
  if (r.oneIn(12)) trigger = set(trigger, 'when', bothEnds(r));
  else if (r.oneIn(4)) trigger = set(trigger, 'when', r.oneIn(calm ? 1 : 2) ? obj({ exists: obj({ pointer: calm ? '/k' : r.pick(['/k', '/s', '/gone', '/l/1']) }) }) : predicate(r, doc, 3));
  if (r.oneIn(3)) {
    const plain = fields.filter(([name]) => !['owner', 'url', 'name', 'n', 'flag'].includes(name) && !types.some(([t]) => t === name));
    const variants = Array.from({ length: calm ? 3 : 1 + r.below(3) }, (_, i) =>
      obj({
        name: ['one', 'two', 'three'][i],
        match: r.oneIn(calm ? 12 : 4) ? undefined : obj({ '/v': raw(r.oneIn(calm ? 12 : 4) ? r.pick([1, 2, 3]) : i + 1) }),
        when: r.oneIn(calm ? 20 : 5) ? leaf(r, doc) : undefined,
        normalize: r.oneIn(2) && plain.length > 0 ? new Obj([[r.pick(plain)[0], r.oneIn(2) ? '/v' : obj({ pointer: r.pick(['/s', '/k', '/gone']), required: r.oneIn(2) })]]) : undefined,
      }),
    );
    trigger = set(trigger, 'variants', variants);
  }
  const granted = [];
  if (r.oneIn(3)) {
    const held = r.shuffle(fields).slice(0, 1 + r.below(2));
    trigger = set(trigger, 'resources', new Obj(held.map(([name]) => [name, r.pick(['c', 'repos'])])));
    for (const collection of ['c', 'repos']) {
      if (r.oneIn(6)) continue;
      // Much of what the delivery holds is granted, in another spelling now and then.
      const all = doc.pairs.flatMap(([, v]) => (Array.isArray(v) ? v : [v])).filter((v) => !(v instanceof Obj) && !Array.isArray(v));
      granted.push([collection, [...all.filter(() => !r.oneIn(5)), 'a', 'b', 'c', raw('1e0'), '1']]);
    }
  }
  let filters;
  if (r.oneIn(3)) {
    const picked = r.shuffle(Object.keys(CHOICES)).slice(0, 1 + r.below(4));
    trigger = set(trigger, 'filters', new Obj(picked.map((name) => [name, obj({ pointer: CHOICES[name][0], type: CHOICES[name][1] })])));
    filters = new Obj(r.shuffle(picked.filter(() => r.oneIn(2))).map((name) => [name, chosenFor(r, CHOICES[name][1])]));
  }
  return { trigger, binding: obj({ resources: new Obj(granted) }), event: r.oneIn(12) ? r.pick([...EVENTS, 'Issues', '']) : 'issues', filters };
}

const BAD_FIELDS = [
  'x', null, raw(1), [], obj({}), obj({ type: 'string' }), obj({ pointer: 'x' }), obj({ pointer: '/a', type: 'object' }), obj({ pointer: '/a', type: 'null' }),
  obj({ pointer: '/a', required: 'no' }), obj({ pointer: '/a', default: raw(1) }), obj({ pointer: '/a', as: 'string' }), obj({ pointer: '/a', as: 'decimal-string' }),
  obj({ pointer: '/a', type: 'string', as: 'decimal-string' }), '/a/*/b/*', '/*/*', obj({ pointer: '/a', prefix: 'https://github.com/' }), obj({ pointer: '/a', type: 'string', prefix: 'https://github.com/' }),
  new Obj([['pointer', '/a'], ['pointer', '/b']]), '/a~', '/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a', obj({ pointer: '/a', required: null }), obj({ pointer: '/a', type: null }),
];
const BAD_URL_FIELDS = [
  ['/u/*'], ['/u', 'https://evil.example/'], ['/u', 'https://github.com'], ['/u', 'https://github.com/{nobody}/'], ['/u', 'https://github.com/{url}/'],
  ['/u', 'https://github.com/../'], ['/u', 'https://github.com/{list}/'], ['/u', 'https://github.com/{other}/'], ['/u', 'https://GitHub.com/'], ['/u', 'https://github.com/{owner'],
  ['/u', 'https://github.com/owner}'], ['/u', 'https://github.com/{}'], ['/u', 'https://github.com/{+}'], ['/u', 'https://github.com:443/'], ['/u', '{owner}'], ['/u', ''],
];
const BAD_ORIGINS = ['https://github.com/', 'https://github.com/x', 'https://u@github.com', 'https://github.com?x', 'https://github.com#x', 'github.com', 'https://GitHub.com', '*', 'http://github.com', 'https://github.com:443', 'https://github.com:0', '', null, raw(1), 'https://[::1]', 'https://*.github.com', 'https://github.com.'];

/** The trigger with another projection and nothing that refers to the old one: one fault stays one. */
const simple = (trigger, normalize) =>
  set(['types', 'variants', 'resources', 'resourceOrigins'].reduce((t, key) => set(t, key, undefined), trigger), 'normalize', normalize);

/** The declaration with one fault. */
function spoil(r, d) {
  const { trigger } = d;
  const put = (key, v) => ({ ...d, trigger: set(trigger, key, v) });
  const fields = get(trigger, 'normalize');
  switch (r.below(16)) {
    case 0:
      return put(r.pick(['connector', 'trigger', 'verificationProfile', 'nativeEvents', 'match', 'normalize']), undefined);
    case 1:
      return put(r.pick(['extra', 'When', 'id']), raw(1));
    case 2:
      return { ...d, trigger: new Obj([...trigger.pairs, r.pick(trigger.pairs)]) };
    case 3:
      return put(r.pick(['connector', 'trigger']), r.pick(['', 'A', '1a', '-a', 'a_b', 'a'.repeat(64), null, raw(1), 'a.b', 'a\n', '\u00e9']));
    case 4:
      return put('nativeEvents', r.pick([[], 'issues', null, [raw(1)], ['issues', null], obj({ 0: 'issues' })]));
    case 5:
      return put('match', r.pick([
        obj({}), [], null, obj({ action: 'x' }), obj({ '/a': obj({ x: raw(1) }) }), obj({ '/a': [] }), obj({ '/a/b~1': [[raw(1)]] }), obj({ '/~01': raw('1E400') }),
        new Obj([['/a', raw(1)], ['/a', raw(2)]]), obj({ '/a': Array.from({ length: 101 }, () => 'x') }), new Obj(Array.from({ length: 33 }, (_, i) => [`/${i}`, raw(1)])), obj({ 'a~/b': raw(1) }), obj({ '/k': 'a'.repeat(1025) }),
      ]));
    case 6:
      return put('when', r.pick([obj({}), null, [], obj({ xor: [] }), obj({ not: obj({ in: obj({ pointer: '/a', values: [] }) }) }), obj({ all: [obj({ exists: obj({ pointer: '/a' }) }), obj({ any: [] })] })]));
    case 7:
    case 8:
      return put('normalize', set(fields, r.pick(['z', 'z/b~', 'z\u{1f600}']), r.pick(BAD_FIELDS)));
    case 9: {
      const [pointer, prefix] = r.pick(BAD_URL_FIELDS);
      const normalize = obj({ owner: '/o', list: '/l/*', other: obj({ pointer: '/u', type: 'url' }), url: obj({ pointer, type: 'url', prefix }) });
      return { ...d, trigger: set(simple(trigger, normalize), 'resourceOrigins', ['https://github.com']) };
    }
    case 10:
      return { ...d, trigger: simple(trigger, obj({ a: '/s', u: obj({ pointer: '/u', type: 'url' }) })) };
    case 11: {
      const origins = r.oneIn(4) ? r.pick([[], null, 'https://github.com', obj({})]) : [ORIGINS[0], ORIGINS[1], r.pick(BAD_ORIGINS)];
      return { ...d, trigger: set(simple(trigger, obj({ a: '/s' })), 'resourceOrigins', origins) };
    }
    case 12: {
      const bad = r.pick([
        obj({ ghost: 'string' }), null, [], obj({ a: 'float' }), obj({ a: null }), obj({ a: 'object' }), obj({ a: ['string'] }), new Obj([['a', 'string'], ['a', 'string']]), obj({ a: 'integer', b: 'string' }), obj({ b: 'string', a: 'list' }),
      ]);
      return { ...d, trigger: set(simple(trigger, obj({ a: '/s', b: obj({ pointer: '/n', type: 'integer' }) })), 'types', bad) };
    }
    case 13:
      return put('resources', r.pick([obj({ ghost: 'c' }), null, [], new Obj([[fields.pairs[0][0], raw(1)]]), new Obj([[fields.pairs[0][0], 'c'], [fields.pairs[0][0], 'c']])]));
    case 14:
      return put('variants', r.pick([
        [], obj({}), null, [raw(1)], [obj({})], [obj({ name: 'a' }), obj({ name: 'a' })], [obj({ name: 'a', filters: obj({}) })], [obj({ name: 'a', match: obj({ x: raw(1) }) })], [obj({ name: 'a', match: obj({}) })],
        [obj({ name: 'b' }), obj({ name: 'a', normalize: obj({ ghost: '/x' }) })], [obj({ name: 'a', normalize: new Obj([[fields.pairs[0][0], 'x']]) })], [obj({ name: raw(1) })], [obj({ name: 'a', when: obj({ not: null }) })],
        [new Obj([['name', 'a'], ['name', 'b']])], [obj({ name: 'a', when: null })], [obj({ name: 'a', normalize: [] })], [obj({ name: 'a', match: obj({ '/a/b': [] }) })],
      ]));
    default: {
      const declared = obj({ state: obj({ pointer: '/s', type: 'string' }), size: obj({ pointer: '/n', type: 'integer' }), flag: obj({ pointer: '/b', type: 'boolean' }) });
      if (r.oneIn(2)) {
        const bad = r.pick([obj({ pointer: '/s', type: 'object' }), obj({ pointer: 's', type: 'string' }), '/s', obj({ pointer: '/s' }), obj({ type: 'string' }), obj({ pointer: '/a/*/*', type: 'string' }), obj({ pointer: '/s', type: 'url' }), obj({ pointer: '/s', type: 'string', x: raw(1) }), null]);
        return { ...put('filters', r.oneIn(5) ? r.pick([null, []]) : set(declared, r.pick(['x', 'a/b', '~']), bad)), filters: undefined };
      }
      const chosen = r.pick([
        obj({ ghost: 'x' }), obj({ state: raw(1) }), obj({ state: [] }), obj({ size: raw('1.5') }), obj({ size: '1' }), obj({ size: [raw(1), raw('0.5')] }), obj({ state: null }), obj({ flag: 'true' }), obj({ state: obj({}) }), obj({ state: [['x']] }),
        obj({ state: Array.from({ length: 101 }, () => 'x') }), obj({ size: raw('9007199254740992') }), obj({ state: 'a'.repeat(1025) }), obj({ flag: [true, null] }), new Obj([['state', 'a'], ['ghost/~', 'b']]), [], null, new Obj([['state', 'a'], ['state', 'a']]),
      ]);
      return { ...put('filters', declared), filters: chosen };
    }
  }
}

function bound(r) {
  const past = r.below(2);
  const plain = (entry, v, extra = {}) => ({
    trigger: obj({ connector: 'github', trigger: 'issue', verificationProfile: 'github-v1', nativeEvents: ['issues'], match: obj({ '/k': raw(1) }), normalize: obj({ f: entry }), ...extra }),
    binding: obj({ resources: obj({}) }),
    event: 'issues',
    doc: obj({ k: raw(1), v }),
  });
  const typed = (members) => obj({ pointer: '/v', ...members });
  switch (r.below(8)) {
    case 0:
      return plain(typed({ type: 'string', required: r.oneIn(2) }), 'a'.repeat(4096 + past));
    case 1:
      return plain(typed({ type: 'string' }), '\u{1f600}'.repeat(4096 + past));
    case 2:
      return plain(obj({ pointer: '/v/*', required: r.oneIn(2) }), Array.from({ length: 100 + past }, () => raw(r.below(3))));
    case 3:
      return plain(typed({ type: r.pick(['integer', 'number']), as: 'decimal-string' }), raw(`${r.pick(['1', '2', '12'])}e${4094 + past}`));
    case 4:
      return plain(typed({ type: 'number', as: 'decimal-string' }), raw(`${r.pick(['', '-'])}${r.pick(['1', '1.5', '25'])}e-${4093 + past}`));
    case 5:
      return plain(typed({ type: r.pick(['integer', 'number', undefined]) }), raw(`${r.pick(['', '-'])}900719925474099${1 + past}${r.pick(['', '.0', 'e0'])}`));
    case 6:
      return { ...plain('/v', raw(1), { filters: obj({ x: obj({ pointer: '/v', type: 'integer' }) }) }), filters: obj({ x: Array.from({ length: 100 + past }, (_, i) => raw(i)) }) };
    default: {
      const many = new Obj(Array.from({ length: 32 + past }, (_, i) => [i === 0 ? '/k' : `/m${i}`, raw(1)]));
      const d = plain('/k', raw(1));
      return { ...d, trigger: set(d.trigger, 'match', many), doc: new Obj([['k', raw(1)], ...Array.from({ length: 32 }, (_, i) => [`m${i + 1}`, raw(1)])]) };
    }
  }
}

/** One or two cases about triggers. */
export function triggerCases(r) {
  const calm = r.below(3) > 0;
  const doc = delivery(r, calm);
  const base = r.oneIn(50) ? bound(r) : declaration(r, doc, calm);
  const d = base.doc === undefined && r.oneIn(5) ? spoil(r, base) : base;
  const body = render(d.doc ?? doc, r, r.oneIn(4));
  const one = { kind: 'trigger', trigger: d.trigger, binding: d.binding, filters_chosen: d.filters, event: d.event, document: body };
  const n = r.below(12);
  if (n === 0) return [one, { ...one, document: respell(d.doc ?? doc, r), same_as: true }];
  if (n === 1) {
    const twice = d === base ? withRepeatedKey(d.doc ?? doc, r) : null;
    if (twice !== null) return [{ ...one, document: render(twice), must_be: d.doc === undefined ? 'ambiguous-evidence' : undefined }];
  }
  if (n === 2) {
    const bytes = Buffer.from(body, 'utf8');
    return [{ ...one, document: undefined, document_base64: bytes.subarray(0, r.below(bytes.length + 1)).toString('base64') }];
  }
  if (d.filters !== undefined) return [{ ...one, filters_chosen: undefined }, { ...one, never_match_unless: true }];
  return [one];
}
