// Lock libraries of Node.js, over node-redis, at the server HOST PORT as client NAME: node locks.js HOST PORT NAME
//
// Reads requests "DIALECT OPERATION KEY ARGUMENT…" line by line, and answers each with one line: what the library gave, or the
// class and the text of what it threw.
'use strict';
const readline = require('node:readline');
const redis = require('redis');
const { byHand, transaction, defined } = require('./byhand');
const { redlock3, redlock5 } = require('./redlock');

async function main() {
  const [host, port, name] = process.argv.slice(2);
  const client = redis.createClient({ socket: { host, port: Number(port) } });
  client.on('error', (error) => console.error(error));
  await client.connect();
  const known = {
    'by-hand': byHand(client, name), 'by-hand-transaction': transaction(client, name), 'ioredis-defined': defined(client, name),
    'redlock-3': redlock3(client), 'redlock-5': redlock5(client),
  };
  console.log('ready');
  for await (const request of readline.createInterface({ input: process.stdin })) {
    console.log(await answer(known, request));
  }
}

async function answer(known, request) {
  const [dialect, operation, key, ...args] = request.split(' ');
  try {
    return JSON.stringify((await known[dialect][operation](key, ...args)) ?? null);
  } catch (error) {
    return `${error.name}: ${error.message}`.replaceAll('\n', ' ');
  }
}

main();
