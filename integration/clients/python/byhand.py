"""Locks of one command and a script or two, as applications and smaller libraries write them."""
import redis

DELETE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"
EXPIRE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) else return 0 end"
DELETE_TOLD = "return tostring(redis.call('get', KEYS[1]) == ARGV[1] and redis.call('del', KEYS[1]) == 1)"
EXPIRE_TOLD = "return tostring(redis.call('get', KEYS[1]) == ARGV[1] and redis.call('pexpire', KEYS[1], ARGV[2]) == 1)"


def dialects(client, name):
    return {
        "by-hand": ByHand(client, name), "by-hand-told": Told(client, name), "by-hand-literal": Literal(client, name),
        "setnx-expire": SetnxExpire(client, name), "redlock-py": RedlockPy(client, name), "pottery": Pottery(client, name),
        "aioredlock": Aioredlock(client, name), "celery-once": CeleryOnce(client, name),
    }


class ByHand:
    """SET and EVAL, the way of Redis' own documentation."""

    delete, expire = DELETE, EXPIRE

    def __init__(self, client, name):
        self.client, self.token = client, "token of " + name

    def take(self, key, ms):
        return self.client.set(key, self.token, px=int(ms), nx=True)

    def release(self, key):
        return self.client.eval(self.delete, 1, key, self.token)

    def extend(self, key, ms):
        return self.client.eval(self.expire, 1, key, self.token, ms)


class Told(ByHand):
    """The script gives the words true and false."""

    delete, expire = DELETE_TOLD, EXPIRE_TOLD


class Literal(ByHand):
    """Key and token stand in the script's text; it has neither KEYS nor ARGV."""

    def release(self, key):
        return self.client.eval(
            'if redis.call("get", "%s") == "%s" then return redis.call("del", "%s") else return 0 end' % (key, self.token, key), 0)

    def extend(self, key, ms):
        return self.client.eval(
            'if redis.call("get", "%s") == "%s" then return redis.call("pexpire", "%s", %s) else return 0 end'
            % (key, self.token, key, ms), 0)


class SetnxExpire(ByHand):
    """The time to live comes in a second command."""

    def take(self, key, ms):
        if not self.client.setnx(key, self.token):
            return None
        return self.client.expire(key, int(ms) // 1000)


class RedlockPy(ByHand):
    """No extension, and nobody looks at what the release answers."""

    def take(self, key, ms):
        if self.client.set(key, self.token, nx=True, px=int(ms)):
            return True
        self.release(key)
        return False

    def release(self, key):
        try:
            self.client.eval(DELETE, 1, key, self.token)
        except redis.RedisError:
            pass


class Pottery:
    """Asks for the time that is left by a script, and extends three times at most."""

    LEFT = """
    if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
    local left = redis.call('pttl', KEYS[1])
    if left > 0 then return left end
    return 0
    """

    def __init__(self, client, name):
        self.client, self.token = client, "pottery of " + name
        self.delete, self.expire, self.left = map(client.register_script, (DELETE + " ", EXPIRE + " ", self.LEFT))
        self.extensions = {}

    def take(self, key, ms):
        self.extensions[key] = 0
        return bool(self.client.set(key, self.token, px=int(ms), nx=True))

    def release(self, key):
        if not self.delete(keys=[key], args=[self.token]):
            raise RuntimeError("released an unlocked lock")

    def extend(self, key, ms):
        if self.extensions[key] >= 3:
            raise RuntimeError("too many extensions")
        if not self.expire(keys=[key], args=[self.token, ms]):
            raise RuntimeError("extended an unlocked lock")
        self.extensions[key] += 1

    def locked(self, key, least):
        """Is more time left than so many milliseconds?"""
        return self.left(keys=[key], args=[self.token]) > int(least)


class Aioredlock:
    """Success is everything that is not an error: the scripts answer errors to whom the lock does not belong."""

    SET = """
    local holder = redis.call('get', KEYS[1])
    if holder and holder ~= ARGV[1] then return redis.error_reply('ERROR') end
    return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])
    """
    UNSET = """
    local holder = redis.call('get', KEYS[1])
    if not holder then return redis.status_reply('OK') end
    if holder == ARGV[1] then return redis.call('del', KEYS[1]) end
    return redis.error_reply('ERROR')
    """
    LEFT = """
    if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('ttl', KEYS[1]) end
    return redis.error_reply('ERROR')
    """

    def __init__(self, client, name):
        self.client, self.token = client, "aioredlock of " + name
        self.shas = {}

    def take(self, key, ms):
        return self._run(self.SET, key, ms)

    def extend(self, key, ms):
        return self._run(self.SET, key, ms)

    def release(self, key):
        return self._run(self.UNSET, key)

    def left(self, key, least):
        return self._run(self.LEFT, key) > int(least)

    def _run(self, script, key, *arguments):
        """The scripts are loaded first of all, and again when the server does not know them."""
        if not self.shas:
            self.shas = {text: self.client.script_load(text) for text in (self.SET, self.UNSET, self.LEFT)}
        try:
            return self.client.evalsha(self.shas[script], 1, key, self.token, *arguments)
        except redis.exceptions.NoScriptError:
            self.shas = {}
            return self._run(script, key, *arguments)


class CeleryOnce:
    """Taken with redis-py; another process releases it, with DEL. Who is refused asks how long it lasts."""

    def __init__(self, client, name):
        self.client, self.token = client, "once of " + name

    def take(self, key, ms):
        return self.client.set(key, self.token, nx=True, px=int(ms))

    def left(self, key, least):
        return self.client.pttl(key) > int(least)

    def release(self, key):
        return self.client.delete(key)
