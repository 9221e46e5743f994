// node-redis or ioredis as they connect by default, at the server HOST PORT: node connect.js redis|ioredis HOST PORT
//
// Prints a line "NAME RESULT" for each step, after "version VERSION"; connect_test.go knows what they are.
'use strict';
const { isDeepStrictEqual } = require('node:util');

const [library, host, port] = process.argv.slice(2);
const made = require(library);
const release = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";
const open = [];

// client sends commands as words, with either library.
async function client() {
  const one = library === 'ioredis' ? new (made.Redis ?? made)(Number(port), host) : made.createClient({ socket: { host, port: Number(port) } });
  one.on('error', fail);
  open.push(one);
  if (library !== 'ioredis') await one.connect();
  one.say = (...words) => (library === 'ioredis' ? one.call(...words) : one.sendCommand(words));
  return one;
}

function fail(error) {
  console.error(error);
  process.exit(1);
}

async function step(name, wanted, run) {
  try {
    const said = await run();
    console.log(name, isDeepStrictEqual(said, wanted) ? 'yes' : JSON.stringify(said));
  } catch (error) {
    console.log(name, 'refused:', error.message);
  }
}

async function life(key) {
  const [one, other] = [await client(), await client()];
  const take = (who, token) => who.say('SET', key, token, 'NX', 'PX', '20000');
  const said = [await take(one, 't'), await take(other, 'u'), await other.say('GET', key)];
  return [...said, await other.say('EVAL', release, '1', key, 'u'), await one.say('EVAL', release, '1', key, 't')];
}

// Commands issued in one turn of the event loop leave in one write.
async function pipeline() {
  const one = await client();
  const key = 'lock:pipeline';
  return Promise.all([one.say('SET', key, 't', 'NX', 'PX', '20000'), one.say('GET', key), one.say('PING'), one.say('DEL', key)]);
}

async function messages() {
  const [listener, speaker] = [await client(), await client()];
  let heard;
  const message = new Promise((resolve) => { heard = resolve; });
  if (library === 'ioredis') {
    listener.on('message', (channel, text) => heard(text));
    await listener.subscribe('channel');
  } else {
    await listener.subscribe('channel', heard);
  }
  return [await speaker.publish('channel', 'hello'), await message];
}

async function main() {
  console.log('version', require(`${library}/package.json`).version);
  await step('lock', ['OK', null, 't', 0, 1], () => life('lock:first'));
  await step('other', ['OK', null, 't', 0, 1], () => life('data:first'));
  await step('pipeline', ['OK', 't', 'PONG', 1], pipeline);
  await step('messages', [1, 'hello'], messages);
  process.exit(0);
}

main().catch(fail);
