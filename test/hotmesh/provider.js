'use strict';

/*
 * provider.js: HotMesh's stream provider on hotmesh_stream.
 *
 *   require('./provider').install();      // before the first HotMesh.init()
 *
 * puts HotMeshStreamProvider in the place of HotMesh's own Postgres stream
 * provider; nothing of the package is changed on disk.  The database needs
 * `create extension hotmesh_stream`; engine and workers are configured as ever.
 *
 * Each method is one SQL call.  All of them are short: an empty stream is polled
 * from here, because an engine publishes hooks and timers on the connection it
 * consumes on.  A worker's connection serves nothing else, so it may wait in the
 * database instead (option `wait`).
 *
 * Ids alone do not fence: the receipt of each claim is kept beside its id, so that
 * an acknowledgement counts only while the claim is still the current one.
 */

const { StreamService } = require('@hotmeshio/hotmesh/build/services/stream/index');
const { KeyService, KeyType } = require('@hotmeshio/hotmesh/build/modules/key');
const postgres = require('@hotmeshio/hotmesh/build/services/stream/providers/postgres/postgres');

const ENGINE = 'ENGINE';
const WORKER = 'WORKER';

/* HotMesh's own defaults of consumeMessages */
const POLLS = 3;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 3000;

const PUBLISH = 'select id from hotmesh_stream.hotmesh_publish($1, $2, $3)';
const COMPLETE = 'select outcome from hotmesh_stream.hotmesh_complete($1, $2, $3, $4, $5, $6)';

/* A worker's callback decides what its answer holds, and HotMesh takes what it gets. */
const LENIENT = '{"lenient":true}';

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const isEngineStream = (stream) => stream.endsWith(':');

/* The metadata that tie a worker's answer to the message it answers. */
const sameTask = (a, b) => ['jid', 'gid', 'dad', 'aid'].every((key) => a?.[key] === b?.[key]);

class HotMeshStreamProvider extends StreamService {
  /**
   * @param config.atomicComplete publish a worker's answer and acknowledge its
   *        input in one transaction; default true
   * @param config.reservationTimeout seconds a claim lasts; default: the group's
   * @param config.wait milliseconds a worker waits in the database for a message;
   *        default 0: poll
   */
  constructor(streamClient, storeClient, config = {}) {
    super(streamClient, storeClient, { atomicComplete: true, wait: 0, ...config });
    this.receipts = new Map();
    this.open = null;
  }

  async init(namespace, appId, logger) {
    this.namespace = namespace;
    this.appId = appId;
    this.logger = logger;
    this.features = await this.value('select hotmesh_stream.hotmesh_features() as value', []);
  }

  mintKey(type, params) {
    return KeyService.mintKey(this.namespace, type, { ...params, appId: this.appId });
  }

  transact() {
    return {};
  }

  getProviderSpecificFeatures() {
    return this.features;
  }

  // ---- streams and groups

  async createStream(stream) {
    return await this.createConsumerGroup(stream, isEngineStream(stream) ? ENGINE : WORKER);
  }

  async deleteStream(stream) {
    const target = stream === '*' ? `${this.mintKey(KeyType.STREAMS, {})}*` : stream;
    await this.value('select hotmesh_stream.hotmesh_drop_stream($1) as value', [target]);
    return true;
  }

  async createConsumerGroup(stream, group) {
    await this.value('select hotmesh_stream.hotmesh_create_group($1, $2) as value', [stream, group]);
    return true;
  }

  async deleteConsumerGroup(stream, group) {
    await this.value('select hotmesh_stream.hotmesh_drop_group($1, $2) as value', [stream, group]);
    return true;
  }

  // ---- messages

  /**
   * Publishes JSON texts.  With `transaction` (HotMesh's store transaction) the
   * statement joins it and the transaction is returned, else the ids are.
   */
  async publishMessages(stream, messages, options = {}) {
    const values = [stream, `[${messages.join(',')}]`, LENIENT];

    if (typeof options.transaction?.addCommand === 'function') {
      return options.transaction.addCommand(PUBLISH, values, 'array', (rows) => rows.map((row) => row.id));
    }
    if (messages.length === 1 && this.holds(stream, messages[0])) {
      return [];
    }
    return (await this.rows(PUBLISH, values)).map((row) => row.id);
  }

  async consumeMessages(stream, group, consumer, options = {}) {
    const polls = options.enableBackoff ? (options.maxRetries ?? POLLS) : 1;
    const wait = group === WORKER ? this.config.wait : 0;
    const longest = options.maxBackoff ?? LONGEST_PAUSE_MS;
    let pause = options.initialBackoff ?? FIRST_PAUSE_MS;

    for (let poll = 0; poll < polls; poll++) {
      const messages = await this.claim(stream, group, consumer, options, wait);

      if (messages.length > 0 || !options.enableBackoff || wait > 0) {
        return messages;
      }
      await sleep(pause);
      pause = Math.min(2 * pause, longest);
    }
    return [];
  }

  async retryMessages(stream, group, options = {}) {
    const { consumerName, ...rest } = options;
    const rows = await this.rows(
      'select id, receipt, data, metadata from hotmesh_stream.hotmesh_reclaim($1, $2, $3, $4)',
      [stream, group, consumerName, JSON.stringify(rest)],
    );
    return rows.map((row) => this.received(stream, group, row));
  }

  /** The number of messages that were still this claimer's to acknowledge. */
  async ackAndDelete(stream, group, ids) {
    const open = this.open;

    if (open?.answer && open.stream === stream && open.group === group && ids.length === 1 && ids[0] === open.id) {
      return await this.completeOpen();
    }
    const count = await this.value('select hotmesh_stream.hotmesh_ack($1, $2, $3) as value', [
      stream,
      group,
      this.items(stream, group, ids),
    ]);
    this.forget(stream, group, ids);
    return count;
  }

  async acknowledgeMessages(stream, group, ids) {
    return await this.ackAndDelete(stream, group, ids);
  }

  async deleteMessages(stream, group, ids) {
    return await this.ackAndDelete(stream, group, ids);
  }

  async deadLetterMessages(stream, group, ids, reason = 'refused by the consumer') {
    const count = await this.value('select hotmesh_stream.hotmesh_dead_letter($1, $2, $3, $4) as value', [
      stream,
      group,
      this.items(stream, group, ids),
      reason,
    ]);
    this.forget(stream, group, ids);
    return count;
  }

  async extendReservation(stream, id, consumer, seconds = 30) {
    const group = isEngineStream(stream) ? ENGINE : WORKER;

    return await this.value('select hotmesh_stream.hotmesh_extend($1, $2, $3, $4, $5) as value', [
      stream,
      group,
      JSON.stringify(this.item(stream, group, id)),
      consumer,
      seconds,
    ]);
  }

  async expireJobMessages(jobId) {
    return await this.value('select hotmesh_stream.hotmesh_expire_job($1, $2) as value', [
      this.mintKey(KeyType.STREAMS, {}),
      jobId,
    ]);
  }

  // ---- figures

  async getStreamStats(stream) {
    return await this.value('select hotmesh_stream.hotmesh_stats($1) as value', [stream]);
  }

  async getStreamDepth(stream) {
    return Number(await this.value('select hotmesh_stream.hotmesh_depth($1) as value', [stream]));
  }

  async getStreamDepths(streams) {
    const names = JSON.stringify(streams.map(({ stream }) => stream));
    const rows = await this.rows('select stream, depth from hotmesh_stream.hotmesh_depths($1)', [names]);

    return rows.map(({ stream, depth }) => ({ stream, depth: Number(depth) }));
  }

  async trimStream(stream, options) {
    const trimmed = await this.value('select hotmesh_stream.hotmesh_trim($1, $2) as value', [
      stream,
      JSON.stringify(options),
    ]);
    return Number(trimmed);
  }

  // ---- answering and acknowledging in one transaction

  /*
   * HotMesh publishes a worker's answer and then acknowledges the input: two
   * transactions.  A worker has a provider of its own and handles one message at a
   * time, so the answer can be held back here and sent with the acknowledgement.
   * Until then nothing is published and nothing is acknowledged: whatever fails in
   * between, the input is delivered again.  An answer whose claim was lost is not
   * published; the new claimer answers.
   *
   * HotMesh applies policies.retry before it answers with an error, so that nothing
   * is left of it for hotmesh_complete() to apply.
   */

  /* Is this message the answer to the open one?  Then it is kept for its acknowledgement. */
  holds(stream, message) {
    const open = this.open;

    if (!open || open.answer || (stream !== open.stream && !isEngineStream(stream))) {
      return false;
    }
    if (!sameTask(JSON.parse(message).metadata, open.metadata)) {
      return false;
    }
    open.answer = { stream, message };
    return true;
  }

  async completeOpen() {
    const { stream, group, id, answer } = this.open;
    const item = JSON.stringify(this.item(stream, group, id));
    const [{ outcome }] = await this.rows(COMPLETE, [stream, group, item, answer.stream, answer.message, LENIENT]);

    this.open = null;
    this.forget(stream, group, [id]);
    return outcome === 'lost' ? 0 : 1;
  }

  // ---- claims and receipts

  async claim(stream, group, consumer, options, wait) {
    const batchSize = options.batchSize ?? 1;
    const reservationTimeout = options.reservationTimeout ?? this.config.reservationTimeout;
    const { autoAck } = options;

    this.open = null;
    const rows = await this.rows(
      'select id, receipt, data, metadata from hotmesh_stream.hotmesh_consume($1, $2, $3, $4)',
      [stream, group, consumer, JSON.stringify({ batchSize, reservationTimeout, autoAck, ...(wait > 0 && { wait }) })],
    );
    const messages = rows.map((row) => this.received(stream, group, row));

    if (this.config.atomicComplete && group === WORKER && messages.length === 1 && !autoAck) {
      this.open = { stream, group, id: messages[0].id, metadata: messages[0].data.metadata, answer: null };
    }
    return messages;
  }

  received(stream, group, { id, receipt, data, metadata }) {
    this.receipts.set(this.claimKey(stream, group, id), receipt);
    return { id, data: JSON.parse(data), metadata };
  }

  claimKey(stream, group, id) {
    return JSON.stringify([stream, group, id]);
  }

  item(stream, group, id) {
    const receipt = this.receipts.get(this.claimKey(stream, group, id));
    return receipt ? { id, receipt } : id;
  }

  items(stream, group, ids) {
    return JSON.stringify(ids.map((id) => this.item(stream, group, id)));
  }

  forget(stream, group, ids) {
    for (const id of ids) {
      this.receipts.delete(this.claimKey(stream, group, id));
    }
  }

  // ---- SQL

  async rows(text, values) {
    return (await this.streamClient.query(text, values)).rows;
  }

  async value(text, values) {
    return (await this.rows(text, values))[0].value;
  }
}

/**
 * Makes every HotMesh of this process that is initialised later use
 * HotMeshStreamProvider for its Postgres streams.  Returns a function that undoes it.
 */
function install(config = {}) {
  const stock = postgres.PostgresStreamService;

  postgres.PostgresStreamService = class extends HotMeshStreamProvider {
    constructor(streamClient, storeClient) {
      super(streamClient, storeClient, config);
    }
  };
  return () => {
    postgres.PostgresStreamService = stock;
  };
}

module.exports = { HotMeshStreamProvider, install };
