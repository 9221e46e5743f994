"""redis-py's cluster client, which knows only the node HOST PORT: cluster.py HOST PORT NAME

Prints "ready", then reads lines of JSON, each with a key and the words of a command, and prints each reply as JSON;
cluster_test.go knows the commands.
"""
import json
import sys

import redis

client = redis.cluster.RedisCluster(host=sys.argv[1], port=int(sys.argv[2]), socket_timeout=10, decode_responses=True)
print("ready", flush=True)
for line in sys.stdin:
    _, *words = json.loads(line)
    if words[0] == "EVAL":
        words[2] = int(words[2])  # redis-py adds to the number of keys
    try:
        reply = client.execute_command(*words)
    except (redis.RedisError, OSError) as error:
        reply = {"error": str(error)}
    print(json.dumps(reply), flush=True)
