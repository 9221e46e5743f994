#!/usr/bin/env python3
"""Lock libraries of Python at the server HOST PORT, as client NAME: locks.py HOST PORT NAME

Reads requests "DIALECT OPERATION KEY ARGUMENT..." line by line from its input, and answers each with one line: what the library
gave, or the class and the text of what it raised.
"""
import sys

import redis

sys.dont_write_bytecode = True  # the folder stays as it is

import byhand
import redispy
import redispy2
import signallock


def dialects(host, port, name):
    client = redis.Redis(host=host, port=port)
    every = (redispy.dialects(client, host, port), redispy2.dialects(client), signallock.dialects(client, name),
             byhand.dialects(client, name))
    return {dialect: locks for some in every for dialect, locks in some.items()}


def answer(known, request):
    dialect, operation, key, *arguments = request.split()
    act = getattr(known[dialect], operation.replace("-", "_"))
    try:
        return repr(act(key, *arguments))
    except Exception as error:
        return "%s: %s" % (type(error).__name__, error)


def main():
    known = dialects(sys.argv[1], int(sys.argv[2]), sys.argv[3])
    print("ready", flush=True)
    for request in sys.stdin:
        print(" ".join(answer(known, request).splitlines()), flush=True)


if __name__ == "__main__":
    main()
