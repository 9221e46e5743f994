/* hiredis against a running redlock-proxy with an upstream: relay HOST PORT
 *
 * Prints "ok NAME" for each check, and stops with exit code 1 at the first that fails.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

static const char *host;
static int port;
static char prefix[64];       /* of this run's keys */
static const char *check;     /* the one that runs */

static void fail(const char *format, ...) {
    va_list args;
    fprintf(stderr, "FAILED %s: ", check);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

static redisContext *dial(void) {
    struct timeval limit = {10, 0};
    redisContext *c = redisConnectWithTimeout(host, port, limit);
    if (c == NULL || c->err) fail("connect: %s", c ? c->errstr : "no memory");
    redisSetTimeout(c, limit);
    return c;
}

/* expect_* check a reply and free it. */

static redisReply *need(redisContext *c, redisReply *r) {
    if (r == NULL) fail("the connection failed: %s", c->errstr);
    return r;
}

static void expect_text(redisContext *c, redisReply *r, const char *wanted) {
    need(c, r);
    if (r->str == NULL || (size_t)r->len != strlen(wanted) || memcmp(r->str, wanted, r->len) != 0)
        fail("expected %s, got type %d, %s, %lld", wanted, r->type, r->str ? r->str : "no text", r->integer);
    freeReplyObject(r);
}

static void expect_between(redisContext *c, redisReply *r, long long low, long long high) {
    need(c, r);
    if (r->type != REDIS_REPLY_INTEGER || r->integer < low || r->integer > high)
        fail("expected an integer in [%lld..%lld], got type %d, %s, %lld", low, high, r->type, r->str ? r->str : "no text", r->integer);
    freeReplyObject(r);
}

static void expect_integer(redisContext *c, redisReply *r, long long wanted) { expect_between(c, r, wanted, wanted); }

static void expect_nil(redisContext *c, redisReply *r) {
    need(c, r);
    if (r->type != REDIS_REPLY_NIL) fail("expected nil, got type %d, %s, %lld", r->type, r->str ? r->str : "no text", r->integer);
    freeReplyObject(r);
}

static redisReply *next(redisContext *c) {
    void *r = NULL;
    if (redisGetReply(c, &r) != REDIS_OK) fail("the connection failed: %s", c->errstr);
    return r;
}

static void ping(redisContext *c) { expect_text(c, redisCommand(c, "PING"), "PONG"); }

/* A value may hold any byte. */
static void binary(redisContext *c) {
    char value[256];
    redisReply *r;
    for (int i = 0; i < 256; i++) value[i] = (char)i;
    expect_text(c, redisCommand(c, "SET %sbinary %b", prefix, value, sizeof value), "OK");
    r = need(c, redisCommand(c, "GET %sbinary", prefix));
    if (r->len != sizeof value || memcmp(r->str, value, sizeof value) != 0) fail("the value came back as %d other bytes", (int)r->len);
    freeReplyObject(r);
}

/* All commands are written before the first reply is read; a lock among them keeps its place. */
static void pipeline(redisContext *c) {
    enum { pairs = 5000 };
    char wanted[32];
    for (int i = 0; i < pairs; i++) {
        redisAppendCommand(c, "SET %spipe:%d value-%d", prefix, i, i);
        redisAppendCommand(c, "GET %spipe:%d", prefix, i);
        if (i % 1000 == 0) redisAppendCommand(c, "LOCK %spipe:lock:%d token PX 10000", prefix, i);
    }
    for (int i = 0; i < pairs; i++) {
        snprintf(wanted, sizeof wanted, "value-%d", i);
        expect_text(c, next(c), "OK");
        expect_text(c, next(c), wanted);
        if (i % 1000 == 0) expect_between(c, next(c), 9000, 10000);
    }
}

static void multi(redisContext *c) {
    redisReply *r;
    expect_text(c, redisCommand(c, "MULTI"), "OK");
    expect_text(c, redisCommand(c, "INCR %scount", prefix), "QUEUED");
    expect_text(c, redisCommand(c, "INCR %scount", prefix), "QUEUED");
    r = need(c, redisCommand(c, "EXEC"));
    if (r->type != REDIS_REPLY_ARRAY || r->elements != 2 || r->element[1]->integer != 2) fail("EXEC: type %d, %zu elements", r->type, r->elements);
    freeReplyObject(r);
}

static void watch(redisContext *c) {
    redisContext *other = dial();
    expect_text(c, redisCommand(c, "WATCH %swatched", prefix), "OK");
    expect_text(other, redisCommand(other, "SET %swatched 1", prefix), "OK");
    expect_text(c, redisCommand(c, "MULTI"), "OK");
    expect_text(c, redisCommand(c, "GET %swatched", prefix), "QUEUED");
    expect_nil(c, redisCommand(c, "EXEC"));
    redisFree(other);
}

/* In a transaction a lock command is refused as any unknown one, and the transaction with it. */
static void lock_in_multi(redisContext *c) {
    redisReply *r;
    expect_text(c, redisCommand(c, "MULTI"), "OK");
    r = need(c, redisCommand(c, "LOCK %smulti t PX 10000", prefix));
    if (r->type != REDIS_REPLY_ERROR) fail("LOCK: type %d, %s", r->type, r->str ? r->str : "no text");
    freeReplyObject(r);
    r = need(c, redisCommand(c, "EXEC"));
    if (r->type != REDIS_REPLY_ERROR || strncmp(r->str, "EXECABORT ", 10) != 0) fail("EXEC: type %d, %s", r->type, r->str ? r->str : "no text");
    freeReplyObject(r);
}

static void expect_message(redisContext *c, const char *first, const char *third) {
    redisReply *r = next(c);
    if (r->type != REDIS_REPLY_ARRAY || r->elements != 3 || strcmp(r->element[0]->str, first) != 0) fail("expected %s, got type %d", first, r->type);
    if (third != NULL && strcmp(r->element[2]->str, third) != 0) fail("expected %s, got %s", third, r->element[2]->str);
    freeReplyObject(r);
}

static void pubsub(redisContext *c) {
    redisContext *subscriber = dial();
    redisAppendCommand(subscriber, "SUBSCRIBE %snews", prefix);
    expect_message(subscriber, "subscribe", NULL);
    expect_integer(c, redisCommand(c, "PUBLISH %snews hello", prefix), 1);
    expect_integer(c, redisCommand(c, "PUBLISH %snews again", prefix), 1);
    expect_message(subscriber, "message", "hello");
    expect_message(subscriber, "message", "again");
    redisAppendCommand(subscriber, "UNSUBSCRIBE");
    expect_message(subscriber, "unsubscribe", NULL);
    expect_text(subscriber, redisCommand(subscriber, "PING"), "PONG");
    redisFree(subscriber);
}

static void blocking(redisContext *c) {
    redisContext *other = dial();
    redisReply *r;
    redisAppendCommand(c, "BLPOP %squeue 5", prefix);
    for (int done = 0; !done;) redisBufferWrite(c, &done);
    expect_integer(other, redisCommand(other, "RPUSH %squeue job", prefix), 1);
    r = next(c);
    if (r->type != REDIS_REPLY_ARRAY || strcmp(r->element[1]->str, "job") != 0) fail("BLPOP: type %d", r->type);
    freeReplyObject(r);
    redisFree(other);
}

static void lock(redisContext *c) {
    expect_between(c, redisCommand(c, "LOCK %slife t PX 10000", prefix), 9000, 10000);
    expect_nil(c, redisCommand(c, "LOCK %slife other PX 10000", prefix));
    expect_between(c, redisCommand(c, "EXTEND %slife t PX 20000", prefix), 19000, 20000);
    expect_integer(c, redisCommand(c, "UNLOCK %slife other", prefix), 0);
    expect_integer(c, redisCommand(c, "UNLOCK %slife t", prefix), 1);
    expect_nil(c, redisCommand(c, "EXTEND %slife t PX 10000", prefix));
}

/* The lock is at the masters: at the upstream there is no such key. */
static void lock_is_elsewhere(redisContext *c) {
    expect_between(c, redisCommand(c, "LOCK %selsewhere t PX 10000", prefix), 9000, 10000);
    expect_nil(c, redisCommand(c, "GET %selsewhere", prefix));
}

static void run(const char *name, void (*body)(redisContext *)) {
    redisContext *c = dial();
    check = name;
    body(c);
    redisFree(c);
    printf("ok %s\n", name);
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s HOST PORT\n", argv[0]);
        return 2;
    }
    host = argv[1];
    port = atoi(argv[2]);
    check = "connect";
    snprintf(prefix, sizeof prefix, "hiredis:%d:", (int)getpid());
    setvbuf(stdout, NULL, _IOLBF, 0);
    run("ping", ping);
    run("binary", binary);
    run("pipeline", pipeline);
    run("multi", multi);
    run("watch", watch);
    run("lock-in-multi", lock_in_multi);
    run("pubsub", pubsub);
    run("blocking", blocking);
    run("lock", lock);
    run("lock-is-elsewhere", lock_is_elsewhere);
    return 0;
}
