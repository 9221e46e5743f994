// node-redis' cluster client, which knows only the node HOST PORT: node cluster.js HOST PORT NAME
//
// Prints "ready", then reads lines of JSON, each with a key and the words of a command, and prints each reply as JSON;
// cluster_test.go knows the commands.
'use strict';
const { createCluster } = require('redis');
const { createInterface } = require('node:readline');

const [host, port] = process.argv.slice(2);

async function main() {
  const client = createCluster({ rootNodes: [{ socket: { host, port: Number(port) } }] });
  client.on('error', () => {}); // a lost node: the commands fail, too
  await client.connect();
  console.log('ready');
  for await (const line of createInterface({ input: process.stdin })) {
    const [key, ...words] = JSON.parse(line);
    const reply = await client.sendCommand(key, false, words).catch((error) => ({ error: error.message }));
    console.log(JSON.stringify(reply));
  }
  process.exit();
}

main();
