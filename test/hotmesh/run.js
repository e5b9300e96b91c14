'use strict';

/*
 * run.js: plays the same scenarios on HotMesh's own Postgres provider and on
 * hotmesh_stream, in the database of the environment (PGHOST, PGPORT, PGUSER,
 * PGDATABASE), and compares what came out.  Prints TAP.
 *
 * HotMesh logs to standard output: HMSH_LOGLEVEL=info shows it.
 */

const assert = require('assert');
const path = require('path');
const { fork } = require('child_process');
const { test, done } = require('./tap');
const { quickPace } = require('./scenario');

function play(provider, run) {
  const log = process.env.HMSH_LOGLEVEL ? 'inherit' : 'ignore';
  const child = fork(path.join(__dirname, 'play.js'), [provider, run], {
    env: { HMSH_LOGLEVEL: 'error', ...process.env, ...quickPace },
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
    await test(name, () => {
      assert.deepStrictEqual(ours.results[name], expected);
      assert.ifError(ours.results[name].failed);
    });
  }
  await test('nothing is left in the streams', () => {
    assert.ok(ours.depths.length > 0 && ours.depths.every((depth) => depth === 0), `depths ${ours.depths}`);
  });
  done();
}

main();
