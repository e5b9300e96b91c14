'use strict';

/* application.js: scenarios of the application that app.yaml deploys. */

const fs = require('fs');
const path = require('path');
const { HotMesh } = require('@hotmeshio/hotmesh');
const { connection, PATIENCE_MS, sleep, repeatUntil, plainError, play } = require('./scenario');

const PACE_MS = 400;
const MAX_PACE = 2147483647;

/* The try of each call, by the key of its job. */
const tries = { flaky: {}, thrown: {} };

function noteTry(list, { metadata, data }) {
  (list[data.key] ??= []).push(metadata.try ?? 0);
  return list[data.key];
}

const answer = (input, data) => ({ metadata: { ...input.metadata }, data });

const failure = (input, code, message, error) => ({
  status: 'error',
  code,
  metadata: { ...input.metadata },
  data: { message, error },
});

const callbacks = {
  'work.echo': async (input) =>
    input.data.fail ? failure(input, 422, 'told to fail') : answer(input, { text: input.data.text }),

  'work.describe': async (input) => answer(input, { keys: Object.keys(input).sort(), data: input.data ?? 'none' }),

  'work.odd': async (input) => ({
    ...answer(input, { last: input.data.at(-1) }),
    code: '200',
    stack: null,
    note: { beyond: "HotMesh's types" },
  }),

  'work.flaky': async (input) => {
    const seen = noteTry(tries.flaky, input);
    return seen.length < 3 ? failure(input, 500, 'not yet') : answer(input, { tries: seen });
  },

  'work.refuse': async (input) => failure(input, 403, 'refused', { key: input.data.key }),

  'work.throw': async (input) => {
    noteTry(tries.thrown, input);
    throw new TypeError('thrown by the worker');
  },

  'work.paced': async (input) => answer(input, { text: input.data.text }),
};

/* The data a job ends with, or the error it fails with. */
async function outcome(mesh, topic, data) {
  try {
    return (await mesh.pubsub(topic, data, null, PATIENCE_MS)).data;
  } catch (failed) {
    return { error: plainError(failed.error ?? failed) };
  }
}

async function signalled(mesh) {
  const id = HotMesh.guid();
  const job = outcome(mesh, 'approval.run', { id });
  let ended = false;

  job.then(() => { ended = true; });
  await repeatUntil(() => ended, () => mesh.hook('approval.given', { id, approved: true }));
  return await job;
}

async function throttled(mesh) {
  const topic = 'work.paced';

  await mesh.throttle({ throttle: PACE_MS, topic });
  await sleep(1000);
  const start = Date.now();
  const texts = await Promise.all(['a', 'b', 'c'].map(async (text) => (await outcome(mesh, 'paced.run', { text })).text));
  const slowed = Date.now() - start >= 2 * PACE_MS;

  await mesh.throttle({ throttle: 0, topic });
  return { texts, slowed };
}

async function paused(mesh) {
  const topic = 'work.paced';

  await mesh.throttle({ throttle: -1, topic });
  await sleep(1500);
  const job = await mesh.pub('paced.run', { text: 'late' });
  await sleep(1500);
  const whilePaused = (await mesh.getStatus(job)) > 0 ? 'waits' : 'ran';

  await mesh.throttle({ throttle: 0, topic });
  await repeatUntil(async () => (await mesh.getStatus(job)) <= 0, () => {}, 100);
  return { whilePaused, afterwards: (await mesh.getState('paced.run', job)).data };
}

async function rolled(mesh, appId) {
  const profiles = await mesh.rollCall(1500);

  return profiles
    .map(({ worker_topic, stream, throttle, reclaimDelay, reclaimCount }) => ({
      topic: worker_topic ?? 'engine',
      stream: stream.replace(appId, 'APP_ID'),
      throttle: throttle === MAX_PACE ? 'paused' : throttle,
      reclaimDelay,
      reclaimCount,
    }))
    .sort((a, b) => a.topic.localeCompare(b.topic));
}

/** Depths of the roll call; none may remain when all jobs have ended. */
async function depths(mesh) {
  return (await mesh.rollCall(1500)).map(({ stream_depth }) => stream_depth);
}

const applicationYaml = (appId) => fs.readFileSync(path.join(__dirname, 'app.yaml'), 'utf8').replace('APP_ID', appId);

async function playApplication(appId) {
  const workers = Object.entries(callbacks).map(([topic, callback]) => ({ topic, connection, callback }));
  const mesh = await HotMesh.init({ appId, logLevel: process.env.HMSH_LOGLEVEL, engine: { connection }, workers });

  await mesh.deploy(applicationYaml(appId));
  await mesh.activate('1');

  const scenarios = {
    'worker that fails twice': () => outcome(mesh, 'flaky.run', { key: 'flaky' }),
    'worker without input': () => outcome(mesh, 'bare.run', {}),
    'envelopes beyond the types': () => outcome(mesh, 'odd.run', { id: Date.now(), list: ['first', 'last'] }),
    'sleep': () => outcome(mesh, 'sleepy.run', { text: 'awake \u00e9 \u{1f600} "quoted" \\ %s $1' }),
    'child workflow': () => outcome(mesh, 'parent.run', { text: 'from the child' }),
    'child workflow that fails': () => outcome(mesh, 'parent.run', { text: 'x', fail: true }),
    'webhook signal': () => signalled(mesh),
    'error without policy': () => outcome(mesh, 'refused.run', { key: 'k1' }),
    'error with a path': () => outcome(mesh, 'caught.run', { key: 'k2' }),
    'thrown error': async () => ({ ...(await outcome(mesh, 'thrown.run', { key: 'k3' })), tries: tries.thrown.k3 }),
    'throttle': () => throttled(mesh),
    'pause and resume': () => paused(mesh),
    'roll call': () => rolled(mesh, appId),
  };
  const results = await play(scenarios);

  return { results, depths: await depths(mesh) };
}

module.exports = { applicationYaml, playApplication };
