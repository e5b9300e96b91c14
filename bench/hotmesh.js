'use strict';

/*
 * hotmesh: HotMesh's own stream provider against the one on hotmesh_stream
 *
 * Called by bench/run.sh, with the connection in the PG* environment variables and HotMesh
 * installed below test/hotmesh.  Both providers are called as HotMesh's router calls
 * them, each on a connection of its own, in interleaved pairs of alternating order; prints
 * Markdown.  --quick: a fifth of the work.
 */

const { createRequire } = require('node:module');
const path = require('node:path');

const fromTests = createRequire(path.join(__dirname, '..', 'test', 'hotmesh', 'package.json'));
const { Client } = fromTests('pg');
const { PostgresStreamService } = fromTests('@hotmeshio/hotmesh/build/services/stream/providers/postgres/postgres');
const { HotMeshStreamProvider } = require('../test/hotmesh/provider');

const quick = process.argv.includes('--quick');
const PAIRS = quick ? 5 : 15;
const MESSAGES = quick ? 400 : 2000;
const MANY = quick ? 20000 : 100000;
const GROUP = 'WORKER';

const envelope = (i) =>
  JSON.stringify({
    metadata: { guid: `g${i}`, jid: `j${i}`, gid: 'g', dad: ',0,0', aid: 'a1', topic: 'bench' },
    data: { name: 'Ada', text: 'x'.repeat(80), n: i },
  });
const batches = (n, size) => Array.from({ length: n / size }, (_, b) => Array.from({ length: size }, (_, i) => envelope(b * size + i)));
const logger = Object.fromEntries(['debug', 'info', 'warn', 'error'].map((level) => [level, () => {}]));

async function provider(Service, config) {
  const client = new Client();
  await client.connect();
  await client.query('set synchronous_commit = off');
  const service = new Service(client, client, config);
  await service.init('hmsh', 'bench', logger);
  return { client, service };
}

/* Microseconds per message of a function that handles n messages. */
async function timed(n, work) {
  const start = process.hrtime.bigint();
  await work();
  return Number(process.hrtime.bigint() - start) / 1000 / n;
}

async function publish({ service }, stream, n, size) {
  for (const batch of batches(n, size)) {
    await service.publishMessages(stream, batch);
  }
}

async function consume({ service }, stream, n, size) {
  for (let done = 0; done < n; ) {
    const messages = await service.consumeMessages(stream, GROUP, 'bench', { batchSize: size, enableBackoff: false });

    if (messages.length === 0) {
      throw new Error(`only ${done} of ${n} messages of ${stream}`);
    }
    await service.ackAndDelete(stream, GROUP, messages.map(({ id }) => id));
    done += messages.length;
  }
}

const median = (values) => values.slice().sort((a, b) => a - b)[values.length >> 1];

/* One row: both sides, pair by pair, the one that begins changing. */
async function compare(name, sides, run) {
  const times = { stock: [], ours: [] };

  for (let pair = 0; pair < PAIRS; pair++) {
    const order = pair % 2 === 0 ? ['stock', 'ours'] : ['ours', 'stock'];

    for (const side of order) {
      times[side].push(await run(sides[side], side, pair));
    }
  }
  const ratios = times.ours.map((time, i) => time / times.stock[i]).sort((a, b) => a - b);
  console.log(
    `| ${name} | ${median(times.ours).toFixed(1)} | ${median(times.stock).toFixed(1)} | ${median(ratios).toFixed(2)} | ` +
      `${ratios[0].toFixed(2)} .. ${ratios.at(-1).toFixed(2)} |`,
  );
}

async function sizeOf({ client }, pattern) {
  const { rows } = await client.query(
    `select sum(pg_total_relation_size(oid))::bigint as bytes from pg_class
     where relkind = 'r' and oid::regclass::text ~ $1`,
    [pattern],
  );
  return Number(rows[0].bytes);
}

async function space(sides) {
  const patterns = { stock: '^bench\\.streams', ours: '^hotmesh_stream(_data\\.log_1|\\.(delivery|cursor))' };

  console.log('\n| space for 100,000 messages | ours, MB | HotMesh, MB |\n| --- | --- | --- |');
  for (const stage of ['published', 'consumed and acknowledged']) {
    const megabytes = {};

    for (const side of ['stock', 'ours']) {
      const before = space[side] ?? (space[side] = await sizeOf(sides[side], patterns[side]));

      await (stage === 'published' ? publish : consume)(sides[side], 'hmsh:bench:x:space', MANY, 100);
      megabytes[side] = (((await sizeOf(sides[side], patterns[side])) - before) * 100000) / MANY / 1e6;
    }
    console.log(`| ${stage} | ${megabytes.ours.toFixed(1)} | ${megabytes.stock.toFixed(1)} |`);
  }
}

/* HotMesh 0.3.32 keeps its timers elsewhere; what stays in its table is what was acknowledged. */
async function ballast(sides) {
  const sql = "select count(*) from hotmesh_stream.hotmesh_publish('hmsh:bench:x:timers', $1, '{\"delay\": 86400000}')";

  for (const batch of batches(MANY, 1000)) {
    await sides.ours.client.query(sql, [`[${batch.join(',')}]`]);
  }
  await consume0(sides.ours, 'hmsh:bench:x:timers');
  await publish(sides.stock, 'hmsh:bench:x:timers', MANY, 100);
  await consume(sides.stock, 'hmsh:bench:x:timers', MANY, 100);
}

/* A look that finds nothing makes rows of the delayed messages. */
async function consume0({ service }, stream) {
  while ((await service.consumeMessages(stream, GROUP, 'bench', { batchSize: 1, enableBackoff: false })).length > 0);
}

async function main() {
  const sides = {
    stock: await provider(PostgresStreamService),
    ours: await provider(HotMeshStreamProvider, { atomicComplete: false }),
  };

  console.log(`\n### HotMesh: its own provider against ours, ${PAIRS} interleaved pairs, us per message as the client sees it\n`);
  console.log('| call | ours | HotMesh | ratio, median | least .. most |\n| --- | --- | --- | --- | --- |');
  for (const size of [1, 100]) {
    await compare(`publish ${size}`, sides, (side, _, pair) =>
      timed(MESSAGES, () => publish(side, `hmsh:bench:x:p${size}-${pair}`, MESSAGES, size)),
    );
  }
  for (const size of [1, 10]) {
    await compare(`claim ${size} + ack`, sides, async (side, _, pair) => {
      const stream = `hmsh:bench:x:c${size}-${pair}`;

      await publish(side, stream, MESSAGES, 100);
      return await timed(MESSAGES, () => consume(side, stream, MESSAGES, size));
    });
  }
  await ballast(sides);
  await compare(`claim 1 + ack beside ${MANY} (ours: sleeping timers; HotMesh: acknowledged rows)`, sides, async (side) => {
    await publish(side, 'hmsh:bench:x:timers', 100, 100);
    return await timed(100, () => consume(side, 'hmsh:bench:x:timers', 100, 1));
  });
  await space(sides);
  await Promise.all(Object.values(sides).map(({ client }) => client.end()));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
