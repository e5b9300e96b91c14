'use strict';

/* scenario.js: what the scenarios of both applications share. */

const { Client } = require('pg');

/* Host, port, user and database come from pg's environment variables (PGHOST ...). */
const connection = { class: Client, options: { application_name: 'hotmesh-scenarios' } };

/* HotMesh's settings for tests: timers of one second instead of five, and no long goodbye. */
const quickPace = { HMSH_FIDELITY_SECONDS: '1', HMSH_SCOUT_INTERVAL_SECONDS: '2', HMSH_BLOCK_TIME_MS: '100' };

const PATIENCE_MS = 30000;

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/* Runs `step` until `done()` or until patience ends. */
async function repeatUntil(done, step, everyMs = 500) {
  const end = Date.now() + PATIENCE_MS;

  while (!(await done())) {
    if (Date.now() > end) {
      throw new Error('gave up waiting');
    }
    await step();
    await sleep(everyMs);
  }
}

/* An error without what differs from run to run: its stack and its ids. */
function plainError({ code, message, name, error, is_stream_error }) {
  return { code, message, name, error, is_stream_error };
}

/* Rejects when `promise` does not settle in time. */
function inTime(promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error('no result in time')), PATIENCE_MS);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/* Runs scenarios one after another: { name: result }.  One that throws gives { failed }. */
async function play(scenarios) {
  const results = {};

  for (const [name, scenario] of Object.entries(scenarios)) {
    try {
      results[name] = await inTime(scenario());
    } catch (error) {
      results[name] = { failed: error.message ?? JSON.stringify(error) };
    }
  }
  return results;
}

module.exports = { connection, quickPace, PATIENCE_MS, sleep, repeatUntil, plainError, play };
