// node-redis against a running redlock-proxy: node lock.js HOST PORT
//
// Prints "ok NAME" for each check, and stops with exit code 1 at the first that fails.
'use strict';
const assert = require('node:assert');
const crypto = require('node:crypto');
const { setTimeout: sleep } = require('node:timers/promises');
const { isDeepStrictEqual } = require('node:util');
const redis = require('redis');

const [host, port] = process.argv.slice(2);
const prefix = `node:${crypto.randomBytes(4).toString('hex')}:`;

async function connect(options = {}) {
  const client = redis.createClient({ socket: { host, port: Number(port) }, ...options });
  client.on('error', fail);
  await client.connect();
  return client;
}

function fail(error) {
  console.error(`FAILED ${error.name}: ${error.message}`);
  process.exit(1);
}

function expect(what, wanted, got) {
  const show = JSON.stringify;
  assert.ok(isDeepStrictEqual(got, wanted), `${what}: expected ${show(wanted)}, got ${show(got)}`);
}

function expectBetween(what, low, high, got) {
  const fits = typeof got === 'number' && got > low && got <= high;
  assert.ok(fits, `${what}: expected a number in (${low}..${high}], got ${JSON.stringify(got)}`);
}

async function expectError(client, wanted, ...command) {
  let got;
  try {
    got = await client.sendCommand(command);
  } catch (error) {
    expect(`class of ${error}`, true, error instanceof redis.ErrorReply);
    return expect(command.join(' '), wanted, error.message);
  }
  assert.fail(`${command.join(' ')}: expected ${wanted}, got ${JSON.stringify(got)}`);
}

async function seconds(promise) {
  const start = performance.now();
  const result = await promise;
  return [result, (performance.now() - start) / 1000];
}

// fields makes an object of RESP3's map and of RESP2's keys and values in a row.
function fields(reply) {
  if (!Array.isArray(reply)) return reply;
  const pairs = reply.flatMap((key, i) => (i % 2 ? [] : [[key, reply[i + 1]]]));
  return Object.fromEntries(pairs);
}

// Each check gets a connected client and a function that sends one command on it.
const checks = {
  async ping(client) {
    expect('PING', 'PONG', await client.ping());
  },
  async lock(client, send) {
    expectBetween('LOCK', 9000, 10000, await send('LOCK', `${prefix}life`, 't', 'PX', '10000'));
  },
  async held(client, send) {
    expect('LOCK by another', null, await send('LOCK', `${prefix}life`, 't2', 'PX', '10000'));
  },
  async 'unlock-wrong-token'(client, send) {
    expect('UNLOCK by another', 0, await send('UNLOCK', `${prefix}life`, 't2'));
  },
  async extend(client, send) {
    expectBetween('EXTEND', 9000, 10000, await send('EXTEND', `${prefix}life`, 't', 'PX', '10000'));
  },
  async unlock(client, send) {
    expect('UNLOCK', 1, await send('UNLOCK', `${prefix}life`, 't'));
  },
  async 'extend-after-unlock'(client, send) {
    expect('EXTEND', null, await send('EXTEND', `${prefix}life`, 't', 'PX', '10000'));
  },
  async 'made-token'(client, send) {
    const got = fields(await send('LOCK', `${prefix}made`, '*', 'EX', '5'));
    expectBetween('validity', 4000, 5000, got.validity);
    expect(`32 hexadecimal digits in ${got.token}`, true, /^[0-9a-f]{32}$/.test(got.token));
    expect('UNLOCK with the token made', 1, await send('UNLOCK', `${prefix}made`, got.token));
  },
  async 'block-runs-out'(client, send) {
    const key = `${prefix}out`;
    await send('LOCK', key, 't', 'PX', '10000');
    const [got, waited] = await seconds(send('LOCK', key, 't2', 'PX', '1000', 'BLOCK', '200'));
    expect('LOCK BLOCK 200', null, got);
    expectBetween('seconds waited', 0.19, 9, waited);
    await send('UNLOCK', key, 't');
  },
  async 'block-served'(client, send) {
    const key = `${prefix}served`;
    const waiter = await connect();
    await send('LOCK', key, 't', 'PX', '60000');
    const waiting = seconds(waiter.sendCommand(['LOCK', key, 't2', 'PX', '10000', 'BLOCK', '30000']));
    await sleep(300);
    expect('UNLOCK by the holder', 1, await send('UNLOCK', key, 't'));
    const [got, waited] = await waiting;
    expectBetween('validity after waiting', 9000, 10000, got);
    expectBetween('seconds waited', 0.25, 25, waited);
    expect('UNLOCK by the waiter', 1, await waiter.sendCommand(['UNLOCK', key, 't2']));
    await waiter.quit();
  },
  async 'error-expire'(client) {
    await expectError(client, "ERR invalid expire time in 'lock' command", 'LOCK', 'k', 't', 'PX', '0');
  },
  async 'error-arity'(client) {
    await expectError(client, "ERR wrong number of arguments for 'lock' command: LOCK key token PX milliseconds|EX seconds [SHARED|SLOTS slots] [KEEPALIVE [MAXHOLD milliseconds]] [BLOCK milliseconds] [FENCE] [AT]", 'LOCK', 'k', 't');
  },
  async 'error-unknown'(client) {
    const wanted = "ERR unknown command 'FOO', with args beginning with: 'a' 'b' ";
    await expectError(client, wanted, 'FOO', 'a', 'b');
  },
  // The same key in two databases is two locks.
  async select() {
    const bases = [await connect(), await connect({ database: 1 })];
    for (const [n, base] of bases.entries()) {
      const got = await base.sendCommand(['LOCK', `${prefix}db`, `t${n}`, 'PX', '10000']);
      expectBetween(`LOCK in database ${n}`, 9000, 10000, got);
    }
    for (const [n, base] of bases.entries()) {
      expect(`UNLOCK in database ${n}`, 1, await base.sendCommand(['UNLOCK', `${prefix}db`, `t${n}`]));
      await base.quit();
    }
  },
  // Commands issued in one turn of the event loop leave in one write.
  async pipeline(client, send) {
    const key = `${prefix}pipe`;
    const [validity, ...rest] = await Promise.all([
      send('LOCK', key, 't', 'PX', '10000'), send('UNLOCK', key, 't'), client.ping(),
    ]);
    expectBetween('LOCK', 9000, 10000, validity);
    expect('UNLOCK, PING', [1, 'PONG'], rest);
  },
  async name(client) {
    await client.sendCommand(['CLIENT', 'SETNAME', 'worker-7']);
    expect('CLIENT GETNAME', 'worker-7', await client.sendCommand(['CLIENT', 'GETNAME']));
  },
};

async function main() {
  const client = await connect();
  for (const [name, check] of Object.entries(checks)) {
    try {
      await check(client, (...command) => client.sendCommand(command));
    } catch (error) {
      error.message = `${name}: ${error.message}`;
      throw error;
    }
    console.log(`ok ${name}`);
  }
  await client.quit();
}

main().catch(fail);
