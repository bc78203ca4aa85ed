// Direction (b): we sign, SDKs judge. `postern send` posts to a sink on loopback, and the SDK must accept what
// arrived and refuse it with one byte changed. Prints a JSON line for each.

import { spawn } from 'node:child_process';
import { createSecretKey, generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';

import Anthropic from '@anthropic-ai/sdk';
import { verifyWebhook as clerkVerify } from '@clerk/backend/webhooks';
import { EventCallbackHelper, EventCallbackRequest } from '@dropbox/sign';
import { validateSignature as lineValidate } from '@line/bot-sdk';
import { LinearWebhookClient } from '@linear/sdk/webhooks';
import Mux from '@mux/mux-node';
import onfido from '@onfido/api';
import { Environment, Paddle } from '@paddle/paddle-node-sdk';
import { validateEvent as polarValidate } from '@polar-sh/sdk/webhooks';
import '@shopify/shopify-api/adapters/node';
import { ApiVersion, LogSeverity, shopifyApi } from '@shopify/shopify-api';
import { verifyKey as discordVerify } from 'discord-interactions';
import * as gocardless from 'gocardless-nodejs/webhooks';
import messagebird from 'messagebird/lib/webhook-signature-jwt.js';
import OpenAI from 'openai';
import plivo from 'plivo';
import Razorpay from 'razorpay';
import { validateWebhook as replicateValidate } from 'replicate';
import { Resend } from 'resend';
import Telnyx from 'telnyx';
import { WebflowClient } from 'webflow-api';

import { installed, tampered } from './sdk.mjs';

const POSTERN = process.env.POSTERN;
const JSON_TYPE = { 'content-type': 'application/json' };
const FORM_TYPE = { 'content-type': 'application/x-www-form-urlencoded' };
const BODY = '{ "id":"evt_1", "type":"thing.done",  "note":"honest žluťoučký ✓" }';
const SECRET = 'not-a-secret';
const WHSEC = `whsec_${Buffer.from('not a secret: a test of postern!').toString('base64')}`;

const pair = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' });
const hex = (part) => Buffer.from(part, 'base64url').toString('hex');
const SEED = { secret: hex(pair.d) };
const PUBLIC_HEX = hex(pair.x);
const PUBLIC_BASE64 = Buffer.from(pair.x, 'base64url').toString('base64');

const shopify = shopifyApi({
  apiKey: 'none',
  apiSecretKey: SECRET,
  apiVersion: Object.values(ApiVersion)[0],
  hostName: 'hooks.example.com',
  isEmbeddedApp: false,
  logger: { level: LogSeverity.Error, log: () => {} },
});
const shopifyValidate = async ({ method, url, headers, body }) => {
  const rawRequest = { method, url: new URL(url).pathname, headers };
  return (await shopify.webhooks.validate({ rawBody: body, rawRequest })).valid;
};

// The SDK reads the event as well, and knows its own types alone
const polarCustomer = JSON.stringify({
  type: 'customer.deleted',
  timestamp: '2026-01-01T00:00:00Z',
  data: {
    id: 'c1',
    type: 'individual',
    created_at: '2026-01-01T00:00:00Z',
    modified_at: null,
    deleted_at: null,
    metadata: {},
    email: 'a@example.com',
    email_verified: true,
    name: 'honest ✓',
    billing_name: null,
    billing_address: null,
    tax_id: null,
    organization_id: 'o1',
    avatar_url: null,
  },
});

const dropboxSign = [
  '--X',
  'Content-Disposition: form-data; name="json"',
  '',
  '{"event":{"event_time":"1700000000","event_type":"honest","event_hash":"","event_metadata":{}}}',
  '--X--',
  '',
].join('\r\n');

/** profile, package, the SDK's function, what is sent, and the SDK's word on what arrived */
const cases = [
  ['line', '@line/bot-sdk', 'validateSignature', {
    body: '{"destination":"U1","events":[{"type":"message","note":"honest ✓"}]}',
  }, ({ body, headers }) => lineValidate(body, SECRET, headers['x-line-signature'])],
  ['messagebird_jwt', 'messagebird', 'webhookSignatureJwt.verify', { query: '?b=2&a=1' }, ({ url, body, headers }) =>
    messagebird.verify(url, Buffer.from(body), headers['messagebird-signature-jwt'], createSecretKey(Buffer.from(SECRET)))],
  ['shopify', '@shopify/shopify-api', 'webhooks.validate', {
    headers: {
      ...JSON_TYPE,
      'x-shopify-topic': 'orders/create',
      'x-shopify-shop-domain': 'shop.example.com',
      'x-shopify-api-version': '2026-01',
      'x-shopify-webhook-id': 'w1',
    },
  }, shopifyValidate],
  ['shopify_events', '@shopify/shopify-api', 'webhooks.validate (events)', {
    headers: {
      ...JSON_TYPE,
      'shopify-topic': 'Product',
      'shopify-action': 'update',
      'shopify-shop-domain': 'shop.example.com',
      'shopify-api-version': '2026-01',
      'shopify-event-id': 'e1',
      'shopify-handle': 'h1',
      'shopify-resource-id': 'r1',
      'shopify-webhook-id': 'w1',
    },
  }, shopifyValidate],
  ['openai', 'openai', 'webhooks.unwrap', { secret: WHSEC }, ({ body, headers }) =>
    new OpenAI({ apiKey: 'none' }).webhooks.unwrap(body, headers, WHSEC)],
  ['anthropic', '@anthropic-ai/sdk', 'beta.webhooks.unwrap', { secret: WHSEC }, ({ body, headers }) =>
    new Anthropic({ apiKey: 'none' }).beta.webhooks.unwrap(body, { headers, key: WHSEC })],
  ['resend', 'resend', 'webhooks.verify', { secret: WHSEC }, ({ body, headers }) =>
    new Resend('re_none').webhooks.verify({
      payload: body,
      headers: { id: headers['svix-id'], timestamp: headers['svix-timestamp'], signature: headers['svix-signature'] },
      webhookSecret: WHSEC,
    })],
  ['clerk', '@clerk/backend', 'verifyWebhook', { secret: WHSEC }, ({ method, url, body, headers }) =>
    clerkVerify(new Request(url, { method, headers, body }), { signingSecret: WHSEC })],
  ['replicate', 'replicate', 'validateWebhook', { secret: WHSEC }, ({ body, headers }) =>
    replicateValidate({ headers, body }, WHSEC)],
  ['polar', '@polar-sh/sdk', 'validateEvent', { body: polarCustomer }, ({ body, headers }) =>
    polarValidate(body, headers, SECRET)],
  ['razorpay', 'razorpay', 'validateWebhookSignature', {}, ({ body, headers }) =>
    Razorpay.validateWebhookSignature(body, headers['x-razorpay-signature'], SECRET)],
  ['gocardless', 'gocardless-nodejs', 'webhooks.parse', {
    body: '{"events":[{"id":"EV1","note":"honest ✓"}],"meta":{"webhook_id":"WB1"}}',
  }, ({ body, headers }) => gocardless.parse(body, SECRET, headers['webhook-signature'])],
  // Time and type of the event are signed, the rest of it is not
  ['dropbox_sign', '@dropbox/sign', 'EventCallbackHelper.isValid', {
    headers: { 'content-type': 'multipart/form-data; boundary=X' },
    body: dropboxSign,
  }, ({ body }) => {
    const json = JSON.parse(body.split('\r\n')[3]);
    return EventCallbackHelper.isValid(SECRET, EventCallbackRequest.init(json));
  }],
  ['telnyx', 'telnyx', 'webhooks.unwrap', SEED, ({ body, headers }) =>
    new Telnyx({ apiKey: 'none', publicKey: PUBLIC_BASE64 }).webhooks.unwrap(body, { headers })],
  ['discord_interactions', 'discord-interactions', 'verifyKey', {
    ...SEED,
    body: '{"id":"1","type":2,"data":{"name":"honest ✓"}}',
  }, discord],
  ['discord_webhook_events', 'discord-interactions', 'verifyKey', {
    ...SEED,
    body: '{"version":1,"type":1,"event":{"type":"APPLICATION_AUTHORIZED","data":{"name":"honest ✓"}}}',
  }, discord],
  // Query and fields are sorted, each among its own, and values of one name too
  ['plivo_v3', 'plivo', 'validateV3Signature', {
    query: '?b=2&a=1',
    headers: FORM_TYPE,
    body: 'Event=StartApp&CallUUID=honest&Digits=2&Digits=1&Text=one+two%20%26&Empty=',
  }, ({ method, url, body, headers }) => {
    const fields = {};
    for (const [name, value] of new URLSearchParams(body)) (fields[name] ??= []).push(value);
    const nonce = headers['x-plivo-signature-v3-nonce'];
    return plivo.validateV3Signature(method, url, nonce, SECRET, headers['x-plivo-signature-v3'], fields);
  }],
  ['linear', '@linear/sdk', 'LinearWebhookClient.verify', {
    body: JSON.stringify({ type: 'Issue', action: 'update', note: 'honest ✓', webhookTimestamp: Date.now() }),
  }, ({ body, headers }) => {
    const client = new LinearWebhookClient(SECRET);
    return client.verify(Buffer.from(body), headers['linear-signature'], JSON.parse(body).webhookTimestamp);
  }],
  ['mux', '@mux/mux-node', 'webhooks.verifySignature', {}, async ({ body, headers }) => {
    const mux = new Mux({ tokenId: 'none', tokenSecret: 'none' });
    await mux.webhooks.verifySignature(body, headers, SECRET);
  }],
  ['paddle_billing', '@paddle/paddle-node-sdk', 'webhooks.isSignatureValid', {}, ({ body, headers }) =>
    new Paddle('none', { environment: Environment.sandbox }).webhooks.isSignatureValid(body, SECRET, headers['paddle-signature'])],
  ['onfido', '@onfido/api', 'WebhookEventVerifier.readPayload', {}, ({ body, headers }) =>
    new onfido.WebhookEventVerifier(SECRET).readPayload(body, headers['x-sha2-signature'])],
  ['webflow', 'webflow-api', 'webhooks.verifySignature', {}, ({ body, headers }) =>
    new WebflowClient({ accessToken: 'none' }).webhooks.verifySignature({ headers, body, secret: SECRET })],
];

function discord({ body, headers }) {
  return discordVerify(body, headers['x-signature-ed25519'], headers['x-signature-timestamp'], PUBLIC_HEX);
}

let arrived;
const sink = createServer((request, answer) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    arrived = { method: request.method, path: request.url, headers: request.headers, body: Buffer.concat(chunks).toString() };
    answer.end();
  });
});
sink.listen(0, '127.0.0.1');
await once(sink, 'listening');
const ORIGIN = `http://127.0.0.1:${sink.address().port}`;

/** What arrives when `postern send` signs and posts it */
async function sent(profile, { secret = SECRET, headers = JSON_TYPE, body = BODY, query = '' }) {
  const fixture = { method: 'POST', url: 'https://hooks.example.com/', headers, body };
  const to = `${ORIGIN}/in/${profile}${query}`;
  const child = spawn(POSTERN, ['send', '-', '--to', to, '--profile', profile, '--secret-env', 'SDK_SECRET'], {
    env: { ...process.env, SDK_SECRET: secret },
    stdio: ['pipe', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr.on('data', (text) => (said += text));
  arrived = undefined;
  child.stdin.end(JSON.stringify(fixture));
  const [code] = await once(child, 'close');
  if (code !== 0 || !arrived) throw new Error(`postern send ended with ${code}: ${said}`);
  return { ...arrived, url: ORIGIN + arrived.path };
}

/** SDKs refuse by `false` or by throwing; some return the event, some nothing */
async function accepts(verify, request) {
  try {
    return { yes: (await verify(request)) !== false };
  } catch (e) {
    return { yes: false, why: e.message };
  }
}

for (const [profile, name, fn, what, verify] of cases) {
  let why;
  try {
    const request = await sent(profile, what);
    const plain = await accepts(verify, request);
    const changed = await accepts(verify, { ...request, body: tampered(request.body) });
    if (!plain.yes) why = `the SDK refuses what we signed: ${plain.why ?? 'false'}`;
    else if (changed.yes) why = 'the SDK accepts a changed byte';
  } catch (e) {
    why = e.message;
  }
  console.log(JSON.stringify({ scheme: profile, sdk: installed(name), function: fn, why }));
}
sink.close();
