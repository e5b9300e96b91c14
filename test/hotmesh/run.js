'use strict';

/*
 * run.js: plays the same scenarios on HotMesh's own Postgres provider and on
 * hotmesh_stream, in the database of the environment (PGHOST, PGPORT, PGUSER,
 * PGDATABASE), and compares what came out.  Prints TAP.
 *
 * HotMesh logs to standard output: HMSH_LOGLEVEL=info shows it.
 */

const path = require('path');
const { fork } = require('child_process');
const { isDeepStrictEqual } = require('util');

/* Timers of one second instead of five, and no long goodbye. */
const pace = { HMSH_FIDELITY_SECONDS: '1', HMSH_SCOUT_INTERVAL_SECONDS: '2', HMSH_BLOCK_TIME_MS: '100' };

let count = 0;
let failures = 0;

function ok(passed, name, ...comments) {
  count++;
  failures += passed ? 0 : 1;
  console.log(`${passed ? 'ok' : 'not ok'} ${count} - ${name}`);
  if (!passed) {
    comments.forEach((comment) => console.log(`# ${comment}`));
  }
}

function play(provider, run) {
  const log = process.env.HMSH_LOGLEVEL ? 'inherit' : 'ignore';
  const child = fork(path.join(__dirname, 'play.js'), [provider, run], {
    env: { HMSH_LOGLEVEL: 'error', ...process.env, ...pace },
    stdio: ['ignore', log, 'inherit', 'ipc'],
  });

  return new Promise((resolve, reject) => {
    let played;

    child.on('message', (message) => { played = message; });
    child.on('exit', (code, signal) => {
      if (played) {
        resolve(played);
      } else {
        reject(new Error(`the ${provider} provider ended with ${signal ?? code} and without results`));
      }
    });
  });
}

async function main() {
  const run = process.pid.toString();
  const stock = await play('stock', run);
  const ours = await play('ours', run);

  for (const [name, expected] of Object.entries(stock.results)) {
    const got = ours.results[name];

    ok(isDeepStrictEqual(got, expected) && !got.failed, name,
      `stock: ${JSON.stringify(expected)}`, `ours:  ${JSON.stringify(got)}`);
  }
  ok(ours.depths.length > 0 && ours.depths.every((depth) => depth === 0), 'nothing is left in the streams',
    `depths: ${ours.depths}`);

  console.log(`1..${count}`);
  process.exit(failures ? 1 : 0);
}

main();
