// Locks as applications write them.
'use strict';

const remove = 'if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end';
const expire = 'if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("pexpire", KEYS[1], ARGV[2]) else return 0 end';

// byHand is SET and EVAL, the way of Redis' own documentation.
function byHand(client, name) {
  const token = `token of ${name}`;
  return {
    take: (key, ms) => client.set(key, token, { PX: Number(ms), NX: true }),
    release: (key) => client.eval(remove, { keys: [key], arguments: [token] }),
    extend: (key, ms) => client.eval(expire, { keys: [key], arguments: [token, ms] }),
  };
}

// transaction releases and extends under WATCH, on a connection of its own.
function transaction(client, name) {
  const token = `transaction of ${name}`;
  const guarded = (key, queue) => client.executeIsolated(async (own) => {
    await own.watch(key);
    if ((await own.get(key)) !== token) {
      await own.unwatch();
      return 'not the owner';
    }
    return queue(own.multi()).exec();
  });
  return {
    take: (key, ms) => client.set(key, token, { PX: Number(ms), NX: true }),
    release: (key) => guarded(key, (multi) => multi.del(key)),
    extend: (key, ms) => guarded(key, (multi) => multi.pExpire(key, Number(ms))),
  };
}

// defined sends its scripts as ioredis' defineCommand does: whole the first time, by their SHA from then on.
function defined(client, name) {
  const token = `defined by ${name}`;
  const sent = new Map();
  const run = async (script, ...args) => {
    if (!sent.has(script)) {
      sent.set(script, require('node:crypto').createHash('sha1').update(script).digest('hex'));
      return client.sendCommand(['EVAL', script, '1', ...args]);
    }
    try {
      return await client.sendCommand(['EVALSHA', sent.get(script), '1', ...args]);
    } catch (error) {
      if (!error.message.startsWith('NOSCRIPT')) throw error;
      return client.sendCommand(['EVAL', script, '1', ...args]);
    }
  };
  return {
    take: (key, ms) => client.sendCommand(['set', key, token, 'PX', ms, 'NX']),
    release: (key) => run(`${remove} -- defined`, key, token),
    extend: (key, ms) => run(`${expire} -- defined`, key, token, ms),
    async forget() {
      await client.sendCommand(['SCRIPT', 'FLUSH']);
    },
  };
}

module.exports = { byHand, transaction, defined };
