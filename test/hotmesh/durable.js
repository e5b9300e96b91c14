'use strict';

/* durable.js: scenarios of MeshFlow's durable functions. */

const { MeshFlow, HotMesh } = require('@hotmeshio/hotmesh');
const { connection, repeatUntil, plainError, play } = require('./scenario');

const taskQueue = 'durable';
const quickRetry = (maximumAttempts) => ({ maximumAttempts, backoffCoefficient: 1, maximumInterval: '1s' });

const attempts = {};

const activities = {
  async greet(name) {
    return `hello ${name}`;
  },

  async unsteady(key) {
    attempts[key] = (attempts[key] ?? 0) + 1;
    if (attempts[key] < 3) {
      throw new Error(`attempt ${attempts[key]}`);
    }
    return attempts[key];
  },

  async broken() {
    throw new Error('never works');
  },
};

const proxies = (retryPolicy) => MeshFlow.workflow.proxyActivities({ activities, retryPolicy });

const workflows = {
  async child(name) {
    return await proxies().greet(name);
  },

  async parent(name) {
    const made = await proxies(quickRetry(5)).unsteady(name);
    const slept = await MeshFlow.workflow.sleepFor('1s');
    const greeting = await MeshFlow.workflow.execChild({ taskQueue, workflowName: 'child', args: [name] });

    return { made, slept, greeting };
  },

  async waiter(signalId) {
    const answer = await MeshFlow.workflow.waitFor(signalId);

    return { answer };
  },

  async failing() {
    const { message } = await proxies(quickRetry(2)).broken();

    return { message };
  },
};

async function playDurable(namespace) {
  for (const workflow of Object.values(workflows)) {
    await MeshFlow.Worker.create({ connection, namespace, taskQueue, workflow });
  }
  const client = new MeshFlow.Client({ connection });

  const start = (workflowName, ...args) =>
    client.workflow.start({ namespace, taskQueue, workflowName, workflowId: HotMesh.guid(), args, expire: 120 });

  const outcome = async (workflowName, ...args) => {
    const handle = await start(workflowName, ...args);

    try {
      return { response: await handle.result() };
    } catch (error) {
      return { error: plainError(error) };
    }
  };

  const signalled = async () => {
    const signalId = HotMesh.guid();
    const result = outcome('waiter', signalId);
    let ended = false;

    result.then(() => { ended = true; });
    await repeatUntil(() => ended, () => client.workflow.signal(signalId, { yes: true }, namespace));
    return await result;
  };

  return {
    results: await play({
      'durable: proxied activity': () => outcome('child', 'child'),
      'durable: retry, sleep and child': () => outcome('parent', 'parent'),
      'durable: signal': signalled,
      'durable: activity out of attempts': () => outcome('failing'),
    }),
  };
}

module.exports = { playDurable };
