'use strict';

/*
 * play.js PROVIDER RUN: plays all scenarios on HotMesh's own Postgres provider
 * (stock) or on hotmesh_stream (ours) and sends the results to its parent.  RUN
 * tells apart the applications of several runs in one database.
 */

const { HotMesh } = require('@hotmeshio/hotmesh');
const { install } = require('./provider');
const { playApplication } = require('./application');
const { playDurable } = require('./durable');

async function main(provider, run) {
  if (provider === 'ours') {
    install();
  }
  const application = await playApplication(`app-${provider}-${run}`);
  const durable = await playDurable(`dur-${provider}-${run}`);

  await new Promise((sent) => {
    process.send({ results: { ...application.results, ...durable.results }, depths: application.depths }, sent);
  });
  await HotMesh.stop();
}

main(...process.argv.slice(2))
  .then(() => process.exit(0))
  .catch((error) => {
    console.error(error);
    process.exit(1);
  });
