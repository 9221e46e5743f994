"""The two locks of redis-py 2: one of scripts, and one of transactions for servers without scripts."""
import uuid

import redis
from redis.exceptions import LockError

TAKE = """
local made = redis.call('setnx', KEYS[1], ARGV[1])
if made == 0 then return 0 end
if ARGV[2] ~= '' then redis.call('pexpire', KEYS[1], ARGV[2]) end
return made
"""

RELEASE = """
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('del', KEYS[1])
"""

EXTEND = """
local holder = redis.call('get', KEYS[1])
local left = redis.call('pttl', KEYS[1])
if not holder or holder ~= ARGV[1] or left < 0 then return 0 end
redis.call('pexpire', KEYS[1], left + ARGV[2])
return 1
"""


def dialects(client):
    return {"redis-py-2-scripts": ScriptLocks(client), "redis-py-2-transactions": TransactionLocks(client)}


class ScriptLocks:
    def __init__(self, client):
        self.scripts = [client.register_script(text) for text in (TAKE, RELEASE, EXTEND)]
        self.tokens = {}

    def take(self, key, ms):
        token = uuid.uuid1().hex
        granted = self.scripts[0](keys=[key], args=[token, int(ms) or ""])
        if granted:
            self.tokens[key] = token
        return bool(granted)

    def release(self, key):
        if not self.scripts[1](keys=[key], args=[self.tokens.get(key, "nobody")]):
            raise LockError("not the owner")

    def extend(self, key, ms):
        if not self.scripts[2](keys=[key], args=[self.tokens.get(key, "nobody"), ms]):
            raise LockError("not the owner")
        return True


class TransactionLocks:
    def __init__(self, client):
        self.client = client
        self.tokens = {}

    def take(self, key, ms):
        token = uuid.uuid1().hex.encode()
        if not self.client.setnx(key, token):
            return False
        if int(ms):
            self.client.pexpire(key, int(ms))
        self.tokens[key] = token
        return True

    def release(self, key):
        self._change(key, lambda pipe: (pipe.multi(), pipe.delete(key)))

    def extend(self, key, ms):
        def add(pipe):
            left = pipe.pttl(key)
            pipe.multi()
            pipe.pexpire(key, max(left or 0, 0) + int(ms))
        return self._change(key, add)

    def interrupted(self, key):
        """Another writes the watched key before the transaction."""
        def meddle(pipe):
            self.client.set(key, "meddler", px=20000)
            pipe.multi()
            pipe.delete(key)
        return self._change(key, meddle)

    def _change(self, key, queue):
        with self.client.pipeline() as pipe:
            pipe.watch(key)
            if pipe.get(key) != self.tokens.get(key, b"nobody"):
                raise LockError("not the owner")
            queue(pipe)
            return pipe.execute()
