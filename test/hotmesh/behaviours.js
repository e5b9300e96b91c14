'use strict';

/*
 * behaviours.js: what HotMesh's own tests ask of a stream provider, and what this
 * provider promises beyond that, in the database of the environment.  Prints TAP.
 */

const assert = require('assert');
const { Client } = require('pg');
const { KVTransaction } = require('@hotmeshio/hotmesh/build/services/store/providers/postgres/kvtransaction');
const { HotMeshStreamProvider } = require('./provider');
const { connection, sleep } = require('./scenario');
const { test, done } = require('./tap');

const ENGINE = 'ENGINE';
const WORKER = 'WORKER';
const appId = `behaviours-${process.pid}`;
const engineStream = `hmsh:${appId}:x:`;

let client;
let provider;
let streams = 0;

const newStream = () => `hmsh:${appId}:x:topic${++streams}`;
const metadata = (rest) => ({ guid: `guid-${Math.random()}`, aid: 'a1', jid: 'j1', gid: 'g1', dad: ',0', ...rest });
const envelope = (data = {}, rest = {}) => JSON.stringify({ metadata: metadata(), data, ...rest });

async function newProvider(config) {
  const made = new HotMeshStreamProvider(client, client, config);
  await made.init('hmsh', appId, console);
  return made;
}

async function published(...messages) {
  const stream = newStream();
  const ids = await provider.publishMessages(stream, messages);
  return { stream, ids };
}

const claimed = (stream, consumer, options) => provider.consumeMessages(stream, WORKER, consumer, options);

async function elapsed(body) {
  const start = Date.now();
  await body();
  return Date.now() - start;
}

async function likeHotMesh() {
  await test('a stream is created and deleted', async () => {
    const stream = newStream();
    assert.strictEqual(await provider.createStream(stream), true);
    assert.strictEqual((await provider.getStreamStats(stream)).messageCount, 0);
    assert.strictEqual(await provider.deleteStream(stream), true);
    assert.strictEqual((await provider.getStreamStats(stream)).messageCount, 0);
  });

  await test('statistics count the messages', async () => {
    const { stream } = await published(envelope(), envelope(), envelope());
    assert.strictEqual((await provider.getStreamStats(stream)).messageCount, 3);
  });

  await test('the depth of a stream', async () => {
    const { stream } = await published(envelope(), envelope());
    assert.strictEqual(await provider.getStreamDepth(stream), 2);
  });

  await test('depths come in the order asked for, unknown streams and repetitions too', async () => {
    const two = await published(envelope(), envelope());
    const one = await published(envelope());
    const asked = [one, two, { stream: newStream() }, one].map(({ stream }) => ({ stream }));
    const depths = await provider.getStreamDepths(asked);
    assert.deepStrictEqual(depths.map(({ depth }) => depth), [1, 2, 0, 1]);
    assert.deepStrictEqual(depths.map(({ stream }) => ({ stream })), asked);
  });

  await test('a consumer group is created, twice, and consumed from', async () => {
    const stream = newStream();
    assert.strictEqual(await provider.createConsumerGroup(stream, WORKER), true);
    assert.strictEqual(await provider.createConsumerGroup(stream, WORKER), true);
    await provider.publishMessages(stream, [envelope()]);
    assert.strictEqual((await claimed(stream, 'c1')).length, 1);
  });

  await test('a group gets what was published before it', async () => {
    const { stream } = await published(envelope());
    assert.strictEqual((await provider.consumeMessages(stream, 'LATER', 'c1')).length, 1);
  });

  await test('a consumer group is deleted', async () => {
    const stream = newStream();
    await provider.createConsumerGroup(stream, WORKER);
    assert.strictEqual(await provider.deleteConsumerGroup(stream, WORKER), true);
    assert.deepStrictEqual(await claimed(stream, 'c1'), []);
  });

  await test('publishing returns one text id a message', async () => {
    const { ids } = await published(envelope(), envelope());
    assert.deepStrictEqual(ids.map((id) => typeof id), ['string', 'string']);
  });

  await test('a batch comes in the order published, with its data', async () => {
    const { stream, ids } = await published(envelope({ n: 1 }), envelope({ n: 2 }));
    const messages = await claimed(stream, 'c1', { batchSize: 2 });
    assert.deepStrictEqual(messages.map(({ id, data }) => [id, data.data]), [[ids[0], { n: 1 }], [ids[1], { n: 2 }]]);
  });

  await test('an id that publishing returned can be acknowledged', async () => {
    const { stream, ids } = await published(envelope());
    await claimed(stream, 'c1');
    assert.strictEqual(await provider.ackAndDelete(stream, WORKER, ids), 1);
    assert.strictEqual(await provider.getStreamDepth(stream), 0);
  });

  await test('without backoff consuming returns at once', async () => {
    const { stream } = await published(envelope(), envelope());
    assert.strictEqual((await claimed(stream, 'c1', { enableBackoff: false, batchSize: 2 })).length, 2);
    assert.ok((await elapsed(() => claimed(stream, 'c1', { enableBackoff: false }))) < 100);
  });

  await test('with backoff an empty stream is polled three times', async () => {
    const options = { enableBackoff: true, initialBackoff: 100, maxBackoff: 500 };
    assert.ok((await elapsed(async () => assert.deepStrictEqual(await claimed(newStream(), 'c1', options), []))) >= 690);
  });

  await test('what is published after a vain poll is found by the next', async () => {
    const stream = newStream();
    const options = { enableBackoff: true, initialBackoff: 10, maxBackoff: 20, maxRetries: 2 };
    assert.deepStrictEqual(await claimed(stream, 'c1', options), []);
    await provider.publishMessages(stream, [envelope()]);
    assert.strictEqual((await claimed(stream, 'c1', options)).length, 1);
  });

  await test('polling is bounded', async () => {
    const options = { enableBackoff: true, initialBackoff: 100, maxBackoff: 500, maxRetries: 3 };
    assert.ok((await elapsed(() => claimed(newStream(), 'c1', options))) <= 1500);
  });

  await test('an expired claim goes to the next consumer, with the same id and data', async () => {
    const { stream } = await published(envelope({ kept: true }), envelope());
    const [first] = await claimed(stream, 'a', { reservationTimeout: 1 });
    await claimed(stream, 'a', { reservationTimeout: 60 });
    await sleep(1300);
    const [second] = await claimed(stream, 'b');
    assert.deepStrictEqual([second.id, second.data], [first.id, first.data]);
    assert.strictEqual(second.metadata.retryCount, 1);
  });

  await test('retryMessages takes over what another consumer left idle', async () => {
    const { stream, ids } = await published(envelope());
    await claimed(stream, 'a');
    await sleep(1100);
    const options = { consumerName: 'b', minIdleTime: 1000, limit: 10 };
    const messages = await provider.retryMessages(stream, WORKER, options);
    assert.deepStrictEqual(messages.map(({ id }) => id), ids);
  });

  await test('a trimmed stream keeps its newest messages', async () => {
    const { stream, ids } = await published(envelope(), envelope(), envelope());
    assert.strictEqual(await provider.trimStream(stream, { maxLen: 1 }), 2);
    assert.deepStrictEqual((await claimed(stream, 'c1', { batchSize: 3 })).map(({ id }) => id), [ids[2]]);
  });

  await test('features', () => {
    const { supportsBatching, supportsOrdering, supportsRetry, maxMessageSize } = provider.getProviderSpecificFeatures();
    assert.deepStrictEqual([supportsBatching, supportsOrdering, supportsRetry, maxMessageSize], [true, true, false, 1048576]);
  });
}

async function inTransactions() {
  const transaction = () => new KVTransaction({ pgClient: client });
  const text = { text: 'it\'s "100%s" %L $1 \\ \u0000 \ud800 \u{1f600}' };

  await test('publishing joins the transaction of the store', async () => {
    const stream = newStream();
    const open = transaction();
    assert.strictEqual(await provider.publishMessages(stream, [envelope(text)], { transaction: open }), open);
    assert.strictEqual(await provider.getStreamDepth(stream), 0);
    const [ids] = await open.exec();
    const [message] = await claimed(stream, 'c1');
    assert.deepStrictEqual([[message.id], message.data.data], [ids, text]);
  });

  await test('a transaction that fails publishes nothing', async () => {
    const stream = newStream();
    const open = await provider.publishMessages(stream, [envelope()], { transaction: transaction() });
    open.addCommand('select 1 / 0 as value', [], 'number');
    await assert.rejects(open.exec(), { code: '22012' });
    assert.strictEqual(await provider.getStreamDepth(stream), 0);
  });
}

async function fenced() {
  await test('an acknowledgement counts once, and only for a message that is there', async () => {
    const { stream } = await published(envelope());
    const [{ id }] = await claimed(stream, 'c1');
    assert.strictEqual(await provider.ackAndDelete(stream, WORKER, [id]), 1);
    assert.strictEqual(await provider.ackAndDelete(stream, WORKER, [id]), 0);
    assert.strictEqual(await provider.ackAndDelete(stream, WORKER, ['999999999']), 0);
  });

  await test('a consumer whose claim has ended cannot acknowledge another\'s', async () => {
    const { stream } = await published(envelope());
    const late = await newProvider();
    const [{ id }] = await late.consumeMessages(stream, WORKER, 'late', { reservationTimeout: 1 });
    await sleep(1300);
    await claimed(stream, 'next');
    assert.strictEqual(await late.ackAndDelete(stream, WORKER, [id]), 0);
    assert.strictEqual(await provider.ackAndDelete(stream, WORKER, [id]), 1);
  });

  await test('an extended claim does not end', async () => {
    const { stream } = await published(envelope());
    const [{ id }] = await claimed(stream, 'c1', { reservationTimeout: 1 });
    assert.strictEqual(await provider.extendReservation(stream, id, 'c1', 30), 1);
    await sleep(1300);
    assert.deepStrictEqual(await claimed(stream, 'c2'), []);
  });

  await test('a dead letter is not handed out again', async () => {
    const { stream } = await published(envelope());
    const [{ id }] = await claimed(stream, 'c1', { reservationTimeout: 1 });
    assert.strictEqual(await provider.deadLetterMessages(stream, WORKER, [id], 'poison'), 1);
    assert.strictEqual(await provider.getStreamDepth(stream), 0);
    assert.strictEqual((await provider.getStreamStats(stream)).deadLetterQueueMessageCount, 1);
  });

  await test('a message that no consumer finishes becomes a dead letter, and the engine is told', async () => {
    const stream = newStream();
    await provider.publishMessages(stream, [JSON.stringify({ metadata: metadata({ jid: 'poison' }), data: {} })]);
    for (let delivery = 0; delivery < 4; delivery++) {
      assert.strictEqual((await claimed(stream, 'dies', { reservationTimeout: 1 })).length, 1);
      await sleep(1300);
    }
    assert.deepStrictEqual(await claimed(stream, 'next'), []);
    assert.strictEqual((await provider.getStreamStats(stream)).deadLetterQueueMessageCount, 1);
    const told = await provider.consumeMessages(engineStream, ENGINE, 'e', { autoAck: true, batchSize: 100 });
    const { type, status, code } = told.map(({ data }) => data).find((data) => data.metadata.jid === 'poison');
    assert.deepStrictEqual([type, status, code], ['response', 'error', 999]);
  });

  await test('the messages of a job leave all its streams', async () => {
    const job = (jid) => JSON.stringify({ metadata: metadata({ jid }), data: {} });
    const one = await published(job('gone'), job('kept'));
    const two = await published(job('gone'));
    assert.strictEqual(await provider.expireJobMessages('gone'), 2);
    assert.deepStrictEqual(await Promise.all([one, two].map(({ stream }) => provider.getStreamDepth(stream))), [1, 0]);
  });
}

async function answering() {
  const answer = (input, rest) => JSON.stringify({ metadata: { ...input.metadata, guid: 'answer' }, type: 'response', data: {}, ...rest });
  const depth = () => provider.getStreamDepth(engineStream);

  const error = { status: 'error', code: 500, data: { message: 'failed', code: 500 } };

  for (const [kind, rest] of [['answer', {}], ['error', error]]) {
    await test(`an ${kind} is published with the acknowledgement of its input`, async () => {
      const worker = await newProvider();
      const { stream } = await published(envelope({}, { policies: { retry: { 500: [0] } } }));
      const [{ id, data }] = await worker.consumeMessages(stream, WORKER, 'w');
      const before = await depth();
      assert.deepStrictEqual(await worker.publishMessages(engineStream, [answer(data, rest)]), []);
      assert.strictEqual(await depth(), before);
      assert.strictEqual(await worker.ackAndDelete(stream, WORKER, [id]), 1);
      assert.deepStrictEqual([await depth(), await provider.getStreamDepth(stream)], [before + 1, 0]);
    });
  }

  await test('a retry copy takes the place of its input in one step', async () => {
    const worker = await newProvider();
    const { stream } = await published(envelope());
    const [{ id, data }] = await worker.consumeMessages(stream, WORKER, 'w');
    await worker.publishMessages(stream, [JSON.stringify({ ...data, metadata: { ...data.metadata, try: 1 } })]);
    assert.strictEqual(await worker.ackAndDelete(stream, WORKER, [id]), 1);
    const [copy] = await worker.consumeMessages(stream, WORKER, 'w');
    assert.deepStrictEqual([copy.data.metadata.guid, copy.data.metadata.try], [data.metadata.guid, 1]);
  });

  await test('a worker whose claim has ended answers nothing', async () => {
    const worker = await newProvider();
    const { stream } = await published(envelope());
    const [{ id, data }] = await worker.consumeMessages(stream, WORKER, 'w', { reservationTimeout: 1 });
    const before = await depth();
    await sleep(1300);
    await claimed(stream, 'next');
    await worker.publishMessages(engineStream, [answer(data)]);
    assert.strictEqual(await worker.ackAndDelete(stream, WORKER, [id]), 0);
    assert.strictEqual(await depth(), before);
  });

  await test('an answer to another task and an engine\'s messages are published at once', async () => {
    const worker = await newProvider();
    const { stream } = await published(envelope());
    await worker.consumeMessages(stream, WORKER, 'w');
    const other = answer({ metadata: metadata({ jid: 'other' }) });
    assert.strictEqual((await worker.publishMessages(engineStream, [other])).length, 1);

    const engine = await newProvider();
    const [input] = await engine.consumeMessages(engineStream, ENGINE, 'e');
    assert.strictEqual((await engine.publishMessages(engineStream, [answer(input.data)])).length, 1);
  });

  await test('what a callback may answer beyond HotMesh\'s types is published', async () => {
    const odd = { code: 'ENOENT', note: { any: 1 }, stack: null, data: ['not', 'an', 'object'] };
    const { stream } = await published(answer({ metadata: metadata({ jid: 5 }) }, odd));
    const [{ data }] = await claimed(stream, 'c1');
    assert.deepStrictEqual([data.code, data.note, data.data, data.metadata.jid], ['ENOENT', { any: 1 }, odd.data, 5]);
  });
}

async function main() {
  client = new Client(connection.options);
  await client.connect();
  provider = await newProvider();
  await likeHotMesh();
  await inTransactions();
  await answering();
  await fenced();
  await provider.deleteStream('*');
  done();
}

main();
