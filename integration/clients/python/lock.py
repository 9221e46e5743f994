#!/usr/bin/env python3
"""redis-py against a running redlock-proxy: lock.py HOST PORT

Prints "ok NAME" for each check, and stops with exit code 1 at the first that fails.
"""
import os
import sys
import threading
import time

import redis

HOST, PORT = sys.argv[1], int(sys.argv[2])
PREFIX = "python:%s:" % os.urandom(4).hex()


def connect(**options):
    return redis.Redis(host=HOST, port=PORT, **options)


def expect(what, wanted, got):
    if wanted != got:
        raise AssertionError("%s: expected %r, got %r" % (what, wanted, got))


def expect_between(what, low, high, got):
    if type(got) not in (int, float) or not low < got <= high:
        raise AssertionError("%s: expected a number in (%s..%s], got %r" % (what, low, high, got))


def expect_error(r, wanted, *command):
    try:
        got = r.execute_command(*command)
    except redis.ResponseError as error:
        return expect(command, wanted, str(error))
    raise AssertionError("%s: expected ResponseError %r, got %r" % (command, wanted, got))


def fields(reply):
    """The reply as a dict: RESP3 brings a map, RESP2 its keys and values in a row."""
    pairs = reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2])
    return {key.decode(): value for key, value in pairs}


def ping(r):
    expect("PING", True, r.ping())


def lock(r):
    got = r.execute_command("LOCK", PREFIX + "life", "t", "PX", 10000)
    expect_between("LOCK", 9000, 10000, got)


def held(r):
    got = r.execute_command("LOCK", PREFIX + "life", "t2", "PX", 10000)
    expect("LOCK by another", None, got)


def unlock_wrong_token(r):
    expect("UNLOCK by another", 0, r.execute_command("UNLOCK", PREFIX + "life", "t2"))


def extend(r):
    got = r.execute_command("EXTEND", PREFIX + "life", "t", "PX", 10000)
    expect_between("EXTEND", 9000, 10000, got)


def unlock(r):
    expect("UNLOCK", 1, r.execute_command("UNLOCK", PREFIX + "life", "t"))


def extend_after_unlock(r):
    got = r.execute_command("EXTEND", PREFIX + "life", "t", "PX", 10000)
    expect("EXTEND", None, got)


def made_token(r):
    k = PREFIX + "made"
    got = fields(r.execute_command("LOCK", k, "*", "EX", 5))
    expect_between("validity", 4000, 5000, got["validity"])
    token = got["token"].decode()
    expect("length of " + token, 32, len(token))
    expect("digits beside hexadecimal in " + token, set(), set(token) - set("0123456789abcdef"))
    expect("UNLOCK with the token made", 1, r.execute_command("UNLOCK", k, token))


def block_runs_out(r):
    k = PREFIX + "out"
    r.execute_command("LOCK", k, "t", "PX", 10000)
    start = time.monotonic()
    expect("LOCK BLOCK 200", None, r.execute_command("LOCK", k, "t2", "PX", 1000, "BLOCK", 200))
    expect_between("seconds waited", 0.19, 9, time.monotonic() - start)
    r.execute_command("UNLOCK", k, "t")


def block_served(holder):
    waiter, k = connect(), PREFIX + "served"
    holder.execute_command("LOCK", k, "t", "PX", 60000)
    release = threading.Timer(0.3, holder.execute_command, ("UNLOCK", k, "t"))
    release.start()
    start = time.monotonic()
    got = waiter.execute_command("LOCK", k, "t2", "PX", 10000, "BLOCK", 30000)
    expect_between("seconds waited", 0.25, 25, time.monotonic() - start)
    release.join()
    expect_between("validity after waiting", 9000, 10000, got)
    expect("UNLOCK by the waiter", 1, waiter.execute_command("UNLOCK", k, "t2"))


# redis-py takes the word ERR away from an error's text.
def error_expire(r):
    expect_error(r, "invalid expire time in 'lock' command", "LOCK", "k", "t", "PX", 0)


def error_arity(r):
    expect_error(r, "wrong number of arguments for 'lock' command: LOCK key token PX milliseconds|EX seconds [SHARED|SLOTS slots] [KEEPALIVE [MAXHOLD milliseconds]] [BLOCK milliseconds] [FENCE] [AT]", "LOCK", "k", "t")


def error_unknown(r):
    expect_error(r, "unknown command 'FOO', with args beginning with: 'a' 'b' ", "FOO", "a", "b")


def select(_):
    """The same key in two databases is two locks."""
    k = PREFIX + "db"
    for db in (0, 1):
        got = connect(db=db).execute_command("LOCK", k, "t%d" % db, "PX", 10000)
        expect_between("LOCK in database %d" % db, 9000, 10000, got)
    for db in (0, 1):
        got = connect(db=db).execute_command("UNLOCK", k, "t%d" % db)
        expect("UNLOCK in database %d" % db, 1, got)


def pipeline(r):
    k = PREFIX + "pipe"
    p = r.pipeline(transaction=False)
    p.execute_command("LOCK", k, "t", "PX", 10000)
    p.execute_command("UNLOCK", k, "t")
    p.ping()
    validity, unlocked, pong = p.execute()
    expect_between("LOCK", 9000, 10000, validity)
    expect("UNLOCK, PING", [1, True], [unlocked, pong])


def name(r):
    one = r.client()  # a name belongs to one connection, so not to the pool
    one.client_setname("worker-7")
    expect("CLIENT GETNAME", "worker-7", one.client_getname())


CHECKS = [
    ping, lock, held, unlock_wrong_token, extend, unlock, extend_after_unlock, made_token, block_runs_out,
    block_served, error_expire, error_arity, error_unknown, select, pipeline, name,
]


def main():
    r = connect()
    for check in CHECKS:
        label = check.__name__.replace("_", "-")
        try:
            check(r)
        except Exception as error:
            sys.exit("FAILED %s: %s: %s" % (label, type(error).__name__, error))
        print("ok", label, flush=True)


main()
