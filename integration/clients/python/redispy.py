"""redis-py's own Lock, the blocking and the asyncio one."""
import asyncio

import redis.asyncio


def dialects(client, host, port):
    return {"redis-py": Locks(client), "redis-py-asyncio": AsyncLocks(host, port)}


class Locks:
    def __init__(self, client):
        self.client = client
        self.locks = {}

    def take(self, key, ms):
        """Tries once. No time to live, the library's default, is 0."""
        self.locks[key] = self.client.lock(key, timeout=int(ms) / 1000 or None, blocking=False)
        return self.locks[key].acquire()

    def wait(self, key, ms, patience):
        """Waits so many milliseconds for the lock."""
        self.locks[key] = self.client.lock(key, timeout=int(ms) / 1000, sleep=0.01)
        return self.locks[key].acquire(blocking_timeout=int(patience) / 1000)

    def with_statement(self, key, ms):
        with self.client.lock(key, timeout=int(ms) / 1000, blocking_timeout=0.05, sleep=0.01) as lock:
            return lock.owned(), lock.locked()

    def release(self, key):
        return self.locks[key].release()

    def extend(self, key, ms):
        return self.locks[key].extend(int(ms) / 1000, replace_ttl=True)

    def extend_by(self, key, ms):
        """The default: the time is added to what is left."""
        return self.locks[key].extend(int(ms) / 1000)

    def reacquire(self, key):
        return self.locks[key].reacquire()

    def owned(self, key):
        return self.locks[key].owned()

    def locked(self, key):
        return self.locks[key].locked()

    def pose(self, key, ms):
        """Behaves as if it had been granted the lock."""
        self.locks[key] = self.client.lock(key, timeout=int(ms) / 1000)
        self.locks[key].local.token = b"somebody else"


class AsyncLocks:
    def __init__(self, host, port):
        self.loop = asyncio.new_event_loop()
        self.client = redis.asyncio.Redis(host=host, port=port)
        self.locks = {}

    def take(self, key, ms):
        self.locks[key] = self.client.lock(key, timeout=int(ms) / 1000, blocking_timeout=0)
        return self.loop.run_until_complete(self.locks[key].acquire(blocking=False))

    def release(self, key):
        return self.loop.run_until_complete(self.locks[key].release())

    def extend(self, key, ms):
        return self.loop.run_until_complete(self.locks[key].extend(int(ms) / 1000, replace_ttl=True))

    def owned(self, key):
        return self.loop.run_until_complete(self.locks[key].owned())
