/* What lock libraries of C++ send, over hiredis, at the server HOST PORT as client NAME: locks HOST PORT NAME
 *
 * Reads requests "DIALECT OPERATION KEY ARGUMENT..." line by line, and answers each with one line: the reply. */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LINE = 1024, MAX_LOCKS = 64 };

#define REMOVE "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"
/* Two tokens: the old one goes, and the new one is set as if the lock were free. */
#define CONTINUE                                                                                                       \
    "if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('del', KEYS[1]) end "                                    \
    "return redis.call('set', KEYS[1], ARGV[2], 'px', ARGV[3], 'nx')"

/* turns counts the tokens of a lock: each extension makes a new one. */
struct lock {
    char key[MAX_LINE];
    int turns;
};

struct client {
    redisContext *redis;
    const char *name;
    struct lock locks[MAX_LOCKS];
    int used;
};

static void die(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static struct lock *lock_of(struct client *c, const char *key)
{
    for (int i = 0; i < c->used; i++)
        if (strcmp(c->locks[i].key, key) == 0)
            return &c->locks[i];
    if (c->used == MAX_LOCKS)
        die("too many locks");
    struct lock *made = &c->locks[c->used++];
    snprintf(made->key, sizeof made->key, "%s", key);
    return made;
}

static redisReply *checked(struct client *c, void *reply)
{
    if (reply == NULL)
        die(c->redis->errstr);
    return reply;
}

static void show(const redisReply *reply)
{
    switch (reply->type) {
    case REDIS_REPLY_INTEGER:
        printf("%lld", reply->integer);
        break;
    case REDIS_REPLY_NIL:
        printf("nil");
        break;
    case REDIS_REPLY_ERROR:
        printf("-%s", reply->str);
        break;
    case REDIS_REPLY_ARRAY:
        printf("[");
        for (size_t i = 0; i < reply->elements; i++) {
            printf(i > 0 ? " " : "");
            show(reply->element[i]);
        }
        printf("]");
        break;
    default:
        printf("%s", reply->str);
    }
}

static void show_and_free(redisReply *reply)
{
    show(reply);
    freeReplyObject(reply);
}

/* redlock_cpp rotates its token with each extension. */
static void redlock_cpp(struct client *c, const char *operation, const char *key, const char *ms)
{
    struct lock *lock = lock_of(c, key);
    char token[64], fresh[64];
    snprintf(token, sizeof token, "%s:%d", c->name, lock->turns);
    snprintf(fresh, sizeof fresh, "%s:%d", c->name, lock->turns + 1);
    if (strcmp(operation, "take") == 0) {
        show_and_free(checked(c, redisCommand(c->redis, "set %s %s px %s nx", key, token, ms)));
    } else if (strcmp(operation, "release") == 0) {
        show_and_free(checked(c, redisCommand(c->redis, "EVAL %s 1 %s %s", REMOVE, key, token)));
    } else {
        redisReply *reply = checked(c, redisCommand(c->redis, "EVAL %s 1 %s %s %s %s", CONTINUE, key, token, fresh, ms));
        if (reply->type == REDIS_REPLY_STATUS)
            lock->turns++;
        show_and_free(reply);
    }
}

/* guarded carries out what is behind it if the lock is the client's own; all of it goes in one write. */
static void guarded(struct client *c, const char *key, const char *ms)
{
    freeReplyObject(checked(c, redisCommand(c->redis, "WATCH %s", key)));
    redisReply *holder = checked(c, redisCommand(c->redis, "GET %s", key));
    int own = holder->type == REDIS_REPLY_STRING && strcmp(holder->str, c->name) == 0;
    freeReplyObject(holder);
    if (!own) {
        freeReplyObject(checked(c, redisCommand(c->redis, "UNWATCH")));
        printf("not the owner");
        return;
    }
    redisAppendCommand(c->redis, "MULTI");
    if (ms != NULL)
        redisAppendCommand(c->redis, "PEXPIRE %s %s", key, ms);
    else
        redisAppendCommand(c->redis, "DEL %s", key);
    redisAppendCommand(c->redis, "EXEC");
    for (int i = 0; i < 3; i++) {
        void *reply;
        if (redisGetReply(c->redis, &reply) != REDIS_OK)
            die(c->redis->errstr);
        if (i > 0)
            printf(" ");
        show_and_free(reply);
    }
}

static void redis_plus_plus(struct client *c, const char *operation, const char *key, const char *ms)
{
    if (strcmp(operation, "take") == 0)
        show_and_free(checked(c, redisCommand(c->redis, "SET %s %s PX %s NX", key, c->name, ms)));
    else
        guarded(c, key, strcmp(operation, "extend") == 0 ? ms : NULL);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        die("usage: locks HOST PORT NAME");
    struct client c = { .redis = redisConnect(argv[1], atoi(argv[2])), .name = argv[3] };
    if (c.redis == NULL || c.redis->err)
        die("no connection");
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("ready\n");
    for (char line[MAX_LINE]; fgets(line, sizeof line, stdin) != NULL;) {
        const char *dialect = strtok(line, " \n"), *operation = strtok(NULL, " \n");
        const char *key = strtok(NULL, " \n"), *ms = strtok(NULL, " \n");
        if (dialect == NULL || operation == NULL || key == NULL)
            die("not a request");
        if (strcmp(dialect, "redlock-cpp") == 0)
            redlock_cpp(&c, operation, key, ms);
        else
            redis_plus_plus(&c, operation, key, ms);
        printf("\n");
    }
    redisFree(c.redis);
    return 0;
}
