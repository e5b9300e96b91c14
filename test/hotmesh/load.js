'use strict';

/*
 * load.js [WORKFLOWS]: runs WORKFLOWS (5000) workflows through 4 worker processes
 * while one of these is killed -9 every few seconds, in the database of the
 * environment.  Prints TAP: every workflow ends, with the right result, and the
 * engine was given exactly one answer for each.
 *
 * The engines run in this process: HotMesh's engine writes a job's state and its
 * next messages in two transactions, which no stream can join for it.
 */

const assert = require('assert');
const path = require('path');
const { fork } = require('child_process');
const { Client } = require('pg');
const { HotMesh } = require('@hotmeshio/hotmesh');
const { test, done } = require('./tap');
const { install } = require('./provider');
const { applicationYaml } = require('./application');
const { connection, sleep } = require('./scenario');

const WORKERS = 4;
const ENGINES = 4;
const STARTERS = 8;
const KILL_EVERY_MS = 5000;
const LEASE_S = 5;
const PATIENCE_MS = 15 * 60 * 1000;

const workflows = Number(process.argv[2] ?? 5000);
const appId = `load-${process.pid}`;
const engineStream = `hmsh:${appId}:x:`;
const jobId = (number) => `job-${number}`;

/* ---- the worker processes */

async function work(ownAppId) {
  install({ reservationTimeout: LEASE_S });
  const callback = async ({ metadata, data: { number } }) => {
    await sleep(Math.random() * 20);
    return { metadata: { ...metadata }, data: { square: number * number } };
  };
  await HotMesh.init({ appId: ownAppId, logLevel: 'error', workers: [{ topic: 'work.load', connection, callback }] });
}

function startWorker() {
  return fork(__filename, ['--worker', appId], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
}

/* Kills one worker process after the other, and starts another in its place, until stopped. */
function startKilling(workers) {
  let killed = 0;
  const timer = setInterval(() => {
    const victim = killed++ % workers.length;

    workers[victim].kill('SIGKILL');
    workers[victim] = startWorker();
  }, KILL_EVERY_MS);

  return () => {
    clearInterval(timer);
    workers.forEach((worker) => worker.kill('SIGKILL'));
    return killed;
  };
}

/* ---- the engines */

async function startEngines() {
  const engines = [];

  install({ reservationTimeout: LEASE_S });
  for (let i = 0; i < ENGINES; i++) {
    engines.push(await HotMesh.init({ appId, logLevel: 'error', engine: { connection } }));
  }
  await engines[0].deploy(applicationYaml(appId));
  await engines[0].activate('1');
  return engines;
}

async function startWorkflows(engines) {
  let next = 0;

  await Promise.all(Array.from({ length: STARTERS }, async (_, i) => {
    for (let number = next++; number < workflows; number = next++) {
      await engines[i % engines.length].pub('load.run', { id: jobId(number), number });
    }
  }));
}

/* The numbers of the workflows that have not ended, once all have or patience is over. */
async function unfinished(engine) {
  const end = Date.now() + PATIENCE_MS;
  let open = Array.from({ length: workflows }, (_, number) => number);

  for (;;) {
    const still = [];

    for (const number of open) {
      if (still.length > 20 || (await engine.getStatus(jobId(number))) > 0) {
        still.push(number);
      }
    }
    open = still;
    if (open.length === 0 || Date.now() > end) {
      return open;
    }
    await sleep(500);
  }
}

/* How many answers the engine's stream carried for each job: read by a group of its own. */
async function answersPerJob(client) {
  const answers = new Map();

  for (;;) {
    const { rows } = await client.query(
      `select payload->>'type' as type, payload->'metadata'->>'jid' as jid
       from hotmesh_stream.read($1, 'AUDIT', 'load', max_messages => 1000, no_ack => true)`,
      [engineStream],
    );
    if (rows.length === 0) {
      return answers;
    }
    for (const { jid } of rows.filter(({ type }) => type === 'response')) {
      answers.set(jid, (answers.get(jid) ?? 0) + 1);
    }
  }
}

async function main() {
  const client = new Client(connection.options);
  await client.connect();

  const engines = await startEngines();
  await client.query("select hotmesh_stream.create_group($1, 'AUDIT')", [engineStream]);
  const workers = Array.from({ length: WORKERS }, startWorker);
  const stopKilling = startKilling(workers);

  await startWorkflows(engines);
  const open = await unfinished(engines[0]);
  const killed = stopKilling();

  console.log(`# ${workflows} workflows, ${killed} processes killed`);
  await test('processes were killed', () => assert.ok(killed > 0));
  await test('every workflow ended', () => assert.deepStrictEqual(open, []));
  await test('every workflow has the right result', async () => {
    for (let number = 0; number < workflows; number++) {
      const { data } = await engines[0].getState('load.run', jobId(number));
      assert.deepStrictEqual([number, data.square], [number, number * number]);
    }
  });
  await test('every workflow was answered exactly once', async () => {
    const answers = await answersPerJob(client);
    const wrong = [...answers].filter(([, times]) => times !== 1);
    assert.deepStrictEqual([answers.size, wrong], [workflows, []]);
  });
  done();
}

if (process.argv[2] === '--worker') {
  work(process.argv[3]);
} else {
  main();
}
