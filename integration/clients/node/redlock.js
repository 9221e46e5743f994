// Locks as node-redlock has them, with one Redis among its clients.
'use strict';
const crypto = require('node:crypto');

const scripts = {
  // version 3: one key, always EVAL
  set: "return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])",
  remove: "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0",
  expire: "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0",
  // version 5: any number of keys, and the reply is how many
  acquire: `
    for _, key in ipairs(KEYS) do
      if redis.call("exists", key) == 1 then
        return 0
      end
    end
    for _, key in ipairs(KEYS) do
      redis.call("set", key, ARGV[1], "PX", ARGV[2])
    end
    return #KEYS
  `,
  prolong: `
    for _, key in ipairs(KEYS) do
      if redis.call("get", key) ~= ARGV[1] then
        return 0
      end
    end
    for _, key in ipairs(KEYS) do
      redis.call("set", key, ARGV[1], "PX", ARGV[2])
    end
    return #KEYS
  `,
  release: `
    local removed = 0
    for _, key in ipairs(KEYS) do
      if redis.call("get", key) == ARGV[1] then
        redis.call("del", key)
        removed = removed + 1
      end
    end
    return removed
  `,
};

const newToken = () => crypto.randomBytes(16).toString('hex');

function redlock3(client) {
  const tokens = new Map();
  const run = (script, key, ...args) => client.eval(script, { keys: [key], arguments: [tokens.get(key) ?? 'none', ...args] });
  return {
    async take(key, ms) {
      const token = newToken();
      const granted = await client.eval(scripts.set, { keys: [key], arguments: [token, ms] });
      if (granted) tokens.set(key, token);
      return granted;
    },
    release: (key) => run(scripts.remove, key),
    extend: (key, ms) => run(scripts.expire, key, ms),
  };
}

class ExecutionError extends Error {
  name = 'ExecutionError';
}

function redlock5(client) {
  const tokens = new Map();
  const execute = async (script, keys, ...args) => {
    const sha = crypto.createHash('sha1').update(script).digest('hex');
    const rest = [String(keys.length), ...keys, ...args];
    let count;
    try {
      count = await client.sendCommand(['EVALSHA', sha, ...rest]);
    } catch (error) {
      if (!error.message.startsWith('NOSCRIPT')) throw error;
      count = await client.sendCommand(['EVAL', script, ...rest]);
    }
    if (typeof count !== 'number') throw new Error(`Unexpected result of type ${typeof count}`);
    if (count !== keys.length) {
      throw new ExecutionError(`The operation was applied to: ${count} of the ${keys.length} requested resources.`);
    }
    return count;
  };
  const token = (key) => tokens.get(key) ?? 'none';
  return {
    async take(key, ms) {
      const fresh = newToken();
      await execute(scripts.acquire, key.split(','), fresh, ms);
      tokens.set(key, fresh);
      return 'granted';
    },
    release: (key) => execute(scripts.release, key.split(','), token(key)),
    extend: (key, ms) => execute(scripts.prolong, key.split(','), token(key), ms),
  };
}

module.exports = { redlock3, redlock5 };
