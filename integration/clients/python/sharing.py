"""Opens some connections of redis-py, says what each is answered, and keeps them until a line comes."""
import sys

import redis

CLIENTS = 8


def told(client, who):
    key = "python:%d" % who
    yield client.set(key, who), client.get(key), client.incr("n" + key)
    yield client.hset("h" + key, mapping={"a": 1, "b": 2}), sorted(client.hgetall("h" + key).items())
    yield client.zadd("z" + key, {"a": 1.5}), client.zrange("z" + key, 0, -1, withscores=True)
    yield client.delete(key, "n" + key, "h" + key, "z" + key), client.client_getname()
    with client.pipeline(transaction=True) as pipe:
        yield pipe.set(key, 1).get(key).delete(key).execute()


def main():
    host, port = sys.argv[1:3]
    clients = [
        redis.Redis(host, int(port), db=3, client_name="python", single_connection_client=True) for _ in range(CLIENTS)
    ]
    for who, client in enumerate(clients):
        print(list(told(client, who)))
    print("told", flush=True)
    sys.stdin.readline()


main()
