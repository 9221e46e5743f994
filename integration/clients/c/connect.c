// hiredis as it connects by default, at the server HOST PORT: connect HOST PORT
//
// Prints a line "NAME RESULT" for each step, after "version VERSION"; connect_test.go knows what they are.
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *release = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";
static const char *host;
static int port;

static redisContext *client(void) {
    redisContext *c = redisConnect(host, port);
    if (c == NULL || c->err) {
        fprintf(stderr, "FAILED %s\n", c ? c->errstr : "no context");
        exit(1);
    }
    return c;
}

// is reports whether a reply, which it frees, is this text or number, and keeps the last one that was an error.
static int is(redisReply *r, const char *text, long long number, char *error) {
    if (r == NULL) exit(1);
    if (r->type == REDIS_REPLY_ERROR) snprintf(error, 200, "%s", r->str);
    int same = text ? r->str && strcmp(r->str, text) == 0 && r->type != REDIS_REPLY_ERROR
                    : number < 0 ? r->type == REDIS_REPLY_NIL : r->type == REDIS_REPLY_INTEGER && r->integer == number;
    freeReplyObject(r);
    return same;
}

static void step(const char *name, int done, const char *error) {
    if (*error) printf("%s refused: %s\n", name, error);
    else printf("%s %s\n", name, done ? "yes" : "no");
}

static void life(const char *name, const char *key) {
    char error[200] = "";
    redisContext *one = client(), *other = client();
    int done = is(redisCommand(one, "SET %s t NX PX 20000", key), "OK", 0, error);
    done &= is(redisCommand(other, "SET %s u NX PX 20000", key), NULL, -1, error);
    done &= is(redisCommand(other, "GET %s", key), "t", 0, error);
    done &= is(redisCommand(other, "EVAL %s 1 %s u", release, key), NULL, 0, error);
    done &= is(redisCommand(one, "EVAL %s 1 %s t", release, key), NULL, 1, error);
    step(name, done, error);
}

static redisReply *next(redisContext *c) {
    void *r = NULL;
    return redisGetReply(c, &r) == REDIS_OK ? r : NULL;
}

static void pipeline(void) {
    char error[200] = "";
    redisContext *c = client();
    redisAppendCommand(c, "SET lock:pipeline t NX PX 20000");
    redisAppendCommand(c, "GET lock:pipeline");
    redisAppendCommand(c, "PING");
    redisAppendCommand(c, "DEL lock:pipeline");
    int done = is(next(c), "OK", 0, error);
    done &= is(next(c), "t", 0, error);
    done &= is(next(c), "PONG", 0, error);
    done &= is(next(c), NULL, 1, error);
    step("pipeline", done, error);
}

static void messages(void) {
    char error[200] = "";
    redisContext *c = client();
    freeReplyObject(redisCommand(c, "SUBSCRIBE channel"));
    int done = is(redisCommand(client(), "PUBLISH channel hello"), NULL, 1, error);
    redisReply *r = next(c);
    done &= r && r->type == REDIS_REPLY_ARRAY && r->elements == 3 && strcmp(r->element[2]->str, "hello") == 0;
    step("messages", done, error);
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    host = argv[1];
    port = atoi(argv[2]);
    printf("version %d.%d.%d\n", HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
    life("lock", "lock:first");
    life("other", "data:first");
    pipeline();
    messages();
    return 0;
}
