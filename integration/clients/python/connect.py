# redis-py as it connects by default, at the server HOST PORT: connect.py HOST PORT
#
# Prints a line "NAME RESULT" for each step, after "version VERSION"; connect_test.go knows what they are.
import sys

import redis

host, port = sys.argv[1:]
RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"


def client(**options):
    return redis.Redis(host=host, port=int(port), decode_responses=True, **options)


def step(name, run):
    try:
        said = run()
    except redis.ResponseError as error:
        said = f"refused: {error}"
    if said is not None:
        print(name, said)


def life(key):
    one, other = client(), client()
    said = [one.set(key, "t", nx=True, px=20000), other.set(key, "u", nx=True, px=20000), other.get(key)]
    return "yes" if said + [other.eval(RELEASE, 1, key, "u"), one.eval(RELEASE, 1, key, "t")] == [True, None, "t", 0, 1] else said


def pipeline():
    pipe = client().pipeline(transaction=False)
    said = pipe.set("lock:pipeline", "t", nx=True, px=20000).get("lock:pipeline").ping().delete("lock:pipeline").execute()
    return "yes" if said == [True, "t", True, 1] else said


def messages():
    listener = client().pubsub()
    listener.subscribe("channel")
    said = [listener.get_message(timeout=10)["type"], client().publish("channel", "hello"), listener.get_message(timeout=10)["data"]]
    return "yes" if said == ["subscribe", 1, "hello"] else said


def resp3():
    said = client(protocol=3).execute_command("HELLO")
    return "yes" if isinstance(said, dict) and said["proto"] == 3 else said


def tracking():
    from redis.cache import CacheConfig

    if client().info()["redis_version"] < "7.4":
        return None  # the library refuses it, whoever could do it
    reader, writer = client(protocol=3, cache_config=CacheConfig()), client()
    said = [writer.set("lock:tracked", "t", px=20000), reader.get("lock:tracked"), reader.get("lock:tracked"), writer.delete("lock:tracked")]
    for _ in range(1000):
        if (now := reader.get("lock:tracked")) is None:
            break
    return "yes" if said + [now] == [True, "t", "t", 1, None] else said + [now]


print("version", redis.__version__)
step("lock", lambda: life("lock:first"))
step("other", lambda: life("data:first"))
step("pipeline", pipeline)
step("messages", messages)
if hasattr(redis.connection, "HIREDIS_AVAILABLE") and redis.VERSION >= (5,):
    step("resp3", resp3)
    step("tracking", tracking)
