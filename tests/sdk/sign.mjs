// Direction (a): SDKs sign, our verifier judges. Prints vector lines for `postern profile check`: of each
// signature one that must be accepted, and one with a changed byte that must be refused.

import { createHash, generateKeyPairSync, sign as rawSign } from 'node:crypto';

import { hmacValidator as AdyenHmac } from '@adyen/api-library';
import { signRequest } from '@contentful/node-apps-toolkit';
import { Signature as HubSpot } from '@hubspot/api-client';
import { signWebhookPayload } from '@notionhq/client';
import { sign as octokitSign } from '@octokit/webhooks-methods';
import { encodeSignatureHeader } from '@sanity/webhook';
import sendgrid from '@sendgrid/eventwebhook';
import { WorkOS } from '@workos-inc/node';
import atlassian from 'atlassian-jwt';
import braintree from 'braintree';
import coinbase from 'coinbase-commerce-node';
import { AccessToken } from 'livekit-server-sdk';
import Pusher from 'pusher';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import Stripe from 'stripe';
import { Webhook as Svix } from 'svix';
import twilio from 'twilio/lib/webhooks/webhooks.js';

import { installed, tampered } from './sdk.mjs';

const milliseconds = Date.now();
const now = Math.floor(milliseconds / 1000);
const base64 = (text) => Buffer.from(text).toString('base64');

// Not ASCII, and spaces that no serializer would write: what is signed is bytes
const BODY = '{ "id":"evt_1", "type":"thing.done",  "note":"honest žluťoučký ✓" }';
const JSON_TYPE = { 'content-type': 'application/json' };
const FORM_TYPE = { 'content-type': 'application/x-www-form-urlencoded' };
const WHSEC = `whsec_${base64('not a secret: a test of postern!')}`;

/** profile, package, the SDK's function, and what it makes of a request at this URL */
const cases = [
  ['stripe', 'stripe', 'webhooks.generateTestHeaderString', () => {
    const secret = 'whsec_not_a_secret';
    const header = new Stripe('sk_test_none').webhooks.generateTestHeaderString({ payload: BODY, secret, timestamp: now });
    return { secret, headers: { 'stripe-signature': header } };
  }],
  ['svix', 'svix', 'Webhook.sign', () => ({
    secret: WHSEC,
    headers: {
      'svix-id': 'msg_1',
      'svix-timestamp': String(now),
      'svix-signature': new Svix(WHSEC).sign('msg_1', new Date(now * 1000), BODY),
    },
  })],
  ['standard_webhooks', 'standardwebhooks', 'Webhook.sign', () => ({
    secret: WHSEC,
    headers: {
      'webhook-id': 'msg_1',
      'webhook-timestamp': String(now),
      'webhook-signature': new StandardWebhook(WHSEC).sign('msg_1', new Date(now * 1000), BODY),
    },
  })],
  ['github', '@octokit/webhooks-methods', 'sign', async () => ({
    secret: 'not-a-secret',
    headers: {
      'x-github-event': 'issues',
      'x-github-delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0958',
      'x-hub-signature-256': await octokitSign('not-a-secret', BODY),
    },
  })],
  ['twilio_form', 'twilio', 'getExpectedTwilioSignature', (url) => twilioForm(`${url}?b=2&a=1`)],
  // Twilio may sign the port that the request's URL leaves out
  ['twilio_form', 'twilio', 'getExpectedTwilioSignature :443', (url) => {
    const { origin, pathname } = new URL(url);
    return { ...twilioForm(`${origin}:443${pathname}`), url };
  }],
  ['twilio_form', 'twilio', 'getExpectedTwilioSignature HMAC_SHA256', (url) => twilioForm(url, twilio.HMAC_SHA256)],
  ['twilio_json', 'twilio', 'getExpectedBodyHash + getExpectedTwilioSignature', (at) => {
    const url = `${at}?bodySHA256=${twilio.getExpectedBodyHash(BODY)}`;
    const signature = twilio.getExpectedTwilioSignature('not-a-token', url, {});
    return { secret: 'not-a-token', url, headers: { 'x-twilio-signature': signature } };
  }],
  ['livekit', 'livekit-server-sdk', 'AccessToken.sha256 + toJwt', async () => {
    const token = new AccessToken('key-1', 'not-a-secret', { ttl: '5m' });
    token.sha256 = createHash('sha256').update(BODY).digest('base64');
    return {
      secret: 'not-a-secret',
      params: { issuer: 'key-1' },
      headers: { authorization: await token.toJwt(), 'content-type': 'application/webhook+json' },
    };
  }],
  ['braintree', 'braintree', 'webhookTesting.sampleNotification', () => {
    const gateway = new braintree.BraintreeGateway({
      environment: braintree.Environment.Sandbox,
      merchantId: 'merchant',
      publicKey: 'public-key',
      privateKey: 'not-a-secret',
    });
    const made = gateway.webhookTesting.sampleNotification(braintree.WebhookNotification.Kind.SubscriptionWentPastDue, 'honest');
    const inside = (text) => base64(tampered(Buffer.from(made.bt_payload, 'base64').toString()));
    return {
      secret: 'not-a-secret',
      params: { public_key_id: 'public-key' },
      headers: FORM_TYPE,
      body: String(new URLSearchParams(made)),
      changed: String(new URLSearchParams({ ...made, bt_payload: `${inside(made.bt_payload)}\n` })),
    };
  }],
  ['adyen_standard', '@adyen/api-library', 'hmacValidator.calculateHmac (item)', () => {
    const secret = createHash('sha256').update('not a secret').digest('hex');
    const item = {
      pspReference: '7914073381342284',
      originalReference: '',
      merchantAccountCode: 'TestMerchant',
      merchantReference: 'honest: order 1 \\ ✓',
      amount: { currency: 'EUR', value: 1130 },
      eventCode: 'AUTHORISATION',
      success: 'true',
      eventDate: '2026-01-01T00:00:00+01:00',
      additionalData: {},
    };
    item.additionalData.hmacSignature = new AdyenHmac().calculateHmac(item, secret);
    return { secret, body: JSON.stringify({ live: 'false', notificationItems: [{ NotificationRequestItem: item }] }) };
  }],
  ['adyen_platform', '@adyen/api-library', 'hmacValidator.calculateHmac (text)', () => {
    const secret = createHash('sha256').update('not a secret').digest('hex');
    return { secret, headers: { hmacsignature: new AdyenHmac().calculateHmac(BODY, secret) } };
  }],
  ['hubspot_v1', '@hubspot/api-client', 'Signature.getSignature v1', () => hubspot('v1')],
  ['hubspot_v2', '@hubspot/api-client', 'Signature.getSignature v2', (url) => hubspot('v2', `${url}?portal=1`)],
  ['hubspot_v3', '@hubspot/api-client', 'Signature.getSignature v3', (url) => hubspot('v3', `${url}?portal=1`)],
  ['pusher', 'pusher', 'Token.sign', () => {
    const body = '{"time_ms":1,"events":[{"name":"channel_occupied","channel":"honest"}]}';
    const token = new Pusher.Token('key-1', 'not-a-secret');
    return { secret: 'not-a-secret', body, headers: { 'x-pusher-key': 'key-1', 'x-pusher-signature': token.sign(body) } };
  }],
  ['workos', '@workos-inc/node', 'webhooks.computeSignature', async () => {
    // The SDK takes the event, and signs how it serializes it
    const event = { id: 'event_1', event: 'user.created', data: { note: 'honest ✓' } };
    const v1 = await new WorkOS('sk_none').webhooks.computeSignature(milliseconds, event, 'not-a-secret');
    return {
      secret: 'not-a-secret',
      body: JSON.stringify(event),
      headers: { 'workos-signature': `t=${milliseconds}, v1=${v1}` },
    };
  }],
  ['coinbase_commerce', 'coinbase-commerce-node', 'Webhook.computeSignature', () => ({
    secret: 'not-a-secret',
    headers: { 'x-cc-webhook-signature': coinbase.Webhook.computeSignature(BODY, 'not-a-secret') },
  })],
  ['contentful', '@contentful/node-apps-toolkit', 'signRequest', contentful],
  // The SDK escapes a query before it signs it
  ['contentful', '@contentful/node-apps-toolkit', 'signRequest ?query', (url) => contentful(`${url}?b=2&a=one%20two`)],
  ['sanity', '@sanity/webhook', 'encodeSignatureHeader', async () => ({
    secret: 'not-a-secret',
    headers: { 'sanity-webhook-signature': await encodeSignatureHeader(BODY, milliseconds, 'not-a-secret') },
  })],
  ['notion', '@notionhq/client', 'signWebhookPayload', async () => ({
    secret: 'secret_not_one',
    headers: { 'x-notion-signature': await signWebhookPayload({ body: BODY, verificationToken: 'secret_not_one' }) },
  })],
  // The token covers method and URL, not the body: what is changed is the query
  ['atlassian_connect', 'atlassian-jwt', 'createQueryStringHash + encodeSymmetric', (at) => {
    const url = `${at}?user=honest&b=2&a=one%20two&a=1&empty=`;
    const { pathname, search } = new URL(url);
    const request = atlassian.fromMethodAndUrl('post', pathname + search);
    const claims = { iss: 'client-key', iat: now, exp: now + 180, qsh: atlassian.createQueryStringHash(request) };
    const token = atlassian.encodeSymmetric(claims, 'not-a-secret', atlassian.SymmetricAlgorithm.HS256);
    return {
      secret: 'not-a-secret',
      url,
      changedUrl: tampered(url),
      headers: { authorization: `JWT ${token}` },
    };
  }],
  // No SDK signs ECDSA, nor do we: Node does, and only what the SDK accepts or refuses is handed on
  ['sendgrid', '@sendgrid/eventwebhook', 'EventWebhook.verifySignature', () => {
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
    const spki = publicKey.export({ type: 'spki', format: 'der' }).toString('base64');
    const body = '[{"event":"delivered","sg_event_id":"e1","note":"honest ✓"}]\r\n';
    const signature = rawSign('sha256', Buffer.from(`${now}${body}`), privateKey).toString('base64');
    const hook = new sendgrid.EventWebhook();
    const key = hook.convertPublicKeyToECDSA(spki);
    if (!hook.verifySignature(key, body, signature, String(now))) throw new Error('the SDK refuses it');
    if (hook.verifySignature(key, tampered(body), signature, String(now))) throw new Error('the SDK accepts a changed byte');
    return {
      public_key: { format: 'spki-der-base64', value: spki },
      body,
      headers: {
        'x-twilio-email-event-webhook-signature': signature,
        'x-twilio-email-event-webhook-timestamp': String(now),
      },
    };
  }],
];

function contentful(url) {
  const secret = 'n'.repeat(64);
  const { pathname, search } = new URL(url);
  const headers = { 'content-type': 'application/json', 'x-contentful-topic': 'ContentManagement.Entry.publish' };
  const made = signRequest(secret, { method: 'POST', path: pathname + search, headers, body: BODY }, milliseconds);
  return { secret, url, headers: { ...headers, ...made } };
}

function twilioForm(url, algorithm) {
  // Capitals sort before small letters, and a field that is there twice counts once
  const fields = { CallSid: 'CA1', body: 'honest ✓ &=+', Body: 'capitals first', Digits: '', MediaUrl: ['b', 'a', 'b'] };
  const pairs = Object.entries(fields).flatMap(([name, value]) => [value].flat().map((one) => [name, one]));
  return {
    secret: 'not-a-token',
    url,
    body: String(new URLSearchParams(pairs)),
    headers: {
      ...FORM_TYPE,
      'x-twilio-signature': twilio.getExpectedTwilioSignature('not-a-token', url, fields, algorithm),
      ...(algorithm && { 'x-twilio-webhooks-signature-settings': `key=webhooks_sharedkey_1,algorithm=${algorithm}` }),
    },
  };
}

function hubspot(version, url) {
  const body = '[{"eventId":1,"subscriptionType":"contact.creation","note":"honest ✓"}]';
  const request = { clientSecret: 'not-a-secret', requestBody: body, url, timestamp: milliseconds };
  const signature = HubSpot.getSignature('POST', version, request);
  const headers =
    version === 'v3'
      ? { 'x-hubspot-signature-v3': signature, 'x-hubspot-request-timestamp': String(milliseconds) }
      : { 'x-hubspot-signature': signature, 'x-hubspot-signature-version': version };
  return { secret: 'not-a-secret', url, body, headers };
}

const print = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

for (const [scheme, name, fn, make] of cases) {
  const at = `https://hooks.example.com/in/${scheme}`;
  const about = { scheme, kind: 'delivery', sdk: installed(name), function: fn, now };
  const id = `${scheme}: ${fn}`;
  try {
    const { secret, public_key, params, url = at, headers = {}, body = BODY, ...more } = await make(at);
    const request = { method: 'POST', url, headers: { ...JSON_TYPE, ...headers }, body };
    const changed = more.changedUrl
      ? { ...request, url: more.changedUrl }
      : { ...request, body: more.changed ?? tampered(body) };
    const keys = { secret, public_key, params };
    print({ id: `${id}, as signed`, ...about, ...keys, request, expect: 'accept', why: 'signed by the SDK' });
    print({ id: `${id}, one byte changed`, ...about, ...keys, request: changed, expect: 'reject', why: 'one byte changed' });
  } catch (e) {
    // An unsigned request that should pass: the check fails where the SDK did
    const request = { method: 'POST', url: at, headers: JSON_TYPE, body: BODY };
    print({ id: `${id}, as signed`, ...about, secret: 'none', request, expect: 'accept', why: `the SDK failed: ${e.message}` });
    console.error(`${id}: ${e.stack}`);
  }
}
