#!/usr/bin/env python3
"""redis-py as a user of the proxy's own: users.py HOST PORT CA USER PASSWORD COMMAND…

Sends each command, whose words stand together in one argument, and prints the reply or the error. CA is a file, or empty
for no TLS.
"""
import sys

import redis

host, port, ca, user, password = sys.argv[1:6]
tls = {"ssl": True, "ssl_ca_certs": ca} if ca else {}
for line in sys.argv[6:]:
    r = redis.Redis(host=host, port=int(port), username=user, password=password, decode_responses=True, **tls)
    try:
        reply = r.execute_command(*line.split())
        print("OK" if reply is True else reply)
    except redis.RedisError as error:
        print(error)
