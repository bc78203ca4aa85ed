// What both directions share: the name of an SDK as it is installed, and one byte changed.

import { readFileSync } from 'node:fs';

/** `npm stripe 23.2.0`, of what is installed and not of what was asked for */
export function installed(name) {
  const manifest = new URL(`node_modules/${name}/package.json`, import.meta.url);
  return `npm ${name} ${JSON.parse(readFileSync(manifest, 'utf8')).version}`;
}

/** Every body says "honest" once, where the provider's signature covers it */
export function tampered(text) {
  if (text.split('honest').length !== 2) throw new Error(`no single "honest" in ${text}`);
  return text.replace('honest', 'honesT');
}
