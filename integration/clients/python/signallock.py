"""Locks as python-redis-lock has them: a string beside a list on which the waiters block."""
import uuid

RELEASE = """
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 1 end
redis.call('del', KEYS[2])
redis.call('lpush', KEYS[2], 1)
redis.call('pexpire', KEYS[2], ARGV[2])
redis.call('del', KEYS[1])
return 0
"""

EXTEND = """
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 1 end
if redis.call('ttl', KEYS[1]) < 0 then return 2 end
redis.call('expire', KEYS[1], ARGV[2])
return 0
"""

RESET = """
redis.call('del', KEYS[2])
redis.call('lpush', KEYS[2], 1)
redis.call('pexpire', KEYS[2], ARGV[1])
return redis.call('del', KEYS[1])
"""

SIGNAL_MS = 1000


def dialects(client, name):
    return {"python-redis-lock": Locks(client, name)}


class NotAcquired(RuntimeError):
    pass


class AlreadyAcquired(RuntimeError):
    pass


class NotExpirable(RuntimeError):
    pass


class Locks:
    def __init__(self, client, name):
        self.client = client
        self.own = ("%s:%s" % (name, uuid.uuid4().hex)).encode()
        self.scripts = {text: client.register_script(text) for text in (RELEASE, EXTEND, RESET)}

    def take(self, key, ms):
        self._not_own(key)
        return bool(self._set(key, ms))

    def wait(self, key, ms, patience):
        """Blocks on the signal until the lock is free, then tries again."""
        self._not_own(key)
        while not self._set(key, ms):
            if not self.client.blpop(signal(key), int(patience) // 1000):
                return False
        return True

    def release(self, key):
        if self._run(RELEASE, key, self.own, SIGNAL_MS):
            raise NotAcquired("Lock %s is not acquired or it already expired." % key)

    def extend(self, key, ms):
        refusal = self._run(EXTEND, key, self.own, int(ms) // 1000)
        if refusal:
            raise (NotAcquired, NotExpirable)[refusal - 1](key)

    def reset(self, key):
        return self._run(RESET, key, SIGNAL_MS)

    def locked(self, key):
        return self.client.exists(key), self.client.get(key) == self.own

    def _not_own(self, key):
        if self.client.get(key) == self.own:
            raise AlreadyAcquired("Already acquired from this Lock instance.")

    def _set(self, key, ms):
        return self.client.set(key, self.own, nx=True, ex=int(ms) // 1000 or None)

    def _run(self, script, key, *arguments):
        return self.scripts[script](keys=[key, signal(key)], args=arguments, client=self.client)


def signal(key):
    return "lock-signal:" + key.split(":", 1)[1]
