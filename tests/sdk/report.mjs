// Says for each profile whether an SDK and we agree: node report.mjs <signed.jsonl> <checked.json> <judged.jsonl>,
// the lines of direction (a), what `postern profile check --json` said of them, and the lines of direction (b).

import { readFileSync } from 'node:fs';

/** Fewer covered profiles mean that cases went missing */
const PROFILES = 15;

const lines = (file) => readFileSync(file, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line));
const [signed, judged] = [lines(process.argv[2]), lines(process.argv[4])];
const checked = JSON.parse(readFileSync(process.argv[3], 'utf8'));
if (checked.passed + checked.failed !== signed.length) {
  console.error(`${signed.length} lines were signed, ${checked.passed + checked.failed} checked`);
  process.exit(3);
}

const pairs = new Map();
const pair = ({ scheme, sdk }) => {
  const key = `${scheme}  (${sdk}`;
  if (!pairs.has(key)) pairs.set(key, { scheme, functions: new Set(), faults: [] });
  return pairs.get(key);
};
signed.forEach((line, at) => {
  const { functions, faults } = pair(line);
  functions.add(line.function);
  const failure = checked.failures.find((one) => one.line === at + 1);
  if (failure) faults.push(`${line.function}, ${line.why}: our verifier ${failure.why}`);
});
for (const line of judged) {
  const { functions, faults } = pair(line);
  functions.add(line.function);
  if (line.why) faults.push(`${line.function}: ${line.why}`);
}

let agree = 0;
for (const [key, { functions, faults }] of [...pairs].sort()) {
  if (faults.length === 0) agree += 1;
  console.log(`${faults.length === 0 ? 'ok  ' : 'FAIL'}  ${key} ${[...functions].join(', ')})`);
  for (const fault of faults) console.log(`        ${fault}`);
}
const profiles = new Set([...pairs.values()].map(({ scheme }) => scheme)).size;
if (profiles < PROFILES) console.log(`FAIL  ${profiles} profiles are covered, at least ${PROFILES} must be`);
else console.log(`${profiles} profiles are covered`);
console.log(`${agree} SDKs agree, ${pairs.size - agree} do not`);
process.exit(agree === pairs.size && profiles >= PROFILES ? 0 : 1);
