'use strict';

/* tap.js: tests whose bodies throw when they fail, reported as TAP. */

let count = 0;
let failures = 0;

async function test(name, body) {
  let failed;

  try {
    await body();
  } catch (error) {
    failed = error;
    failures++;
  }
  console.log(`${failed ? 'not ok' : 'ok'} ${++count} - ${name}`);
  if (failed) {
    console.log(failed.stack.replace(/^/gm, '# '));
  }
}

/* Prints the plan and ends the process. */
function done() {
  console.log(`1..${count}`);
  process.exit(failures ? 1 : 0);
}

module.exports = { test, done };
