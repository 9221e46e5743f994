// node-redis as a user of the proxy's own: node users.js HOST PORT CA USER PASSWORD COMMAND…
//
// Sends each command, whose words stand together in one argument, and prints the reply or the error. CA is a file, or
// empty for no TLS.
'use strict';
const fs = require('node:fs');
const redis = require('redis');

const [host, port, ca, username, password, ...lines] = process.argv.slice(2);
const tls = ca ? { tls: true, ca: fs.readFileSync(ca) } : {};

async function main() {
  for (const line of lines) {
    const client = redis.createClient({ socket: { host, port: Number(port), reconnectStrategy: () => new Error('no more'), ...tls }, username, password });
    client.on('error', () => {});
    try {
      await client.connect();
      console.log(await client.sendCommand(line.split(' ')));
    } catch (error) {
      console.log((error.socketError ?? error).message); // what a connection failed of
    }
    await client.disconnect().catch(() => {});
  }
}

main();
