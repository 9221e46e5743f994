import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.UUID;

/**
 * A job store of Quartz, as quartz-redis-jobstore has it: one lock around each change, released by GET and DEL; each state of triggers a
 * sorted set by the time of their next firing; and a lock without an owner's token for each trigger of a job that must not run twice at once.
 *
 * <p>take and release are about the store's lock alone, KEY; the other operations about a store whose names begin with KEY.
 */
final class Quartz implements Locks.Dialect {
    private static final List<String> STATES = List.of("waiting", "paused", "blocked", "paused_blocked", "acquired", "completed", "error");
    private static final String LOCKED_FOR = "30000";
    private static final String TRIGGER_LOCKED_FOR = "600000";
    private static final long ALIVE = 240_000; // a scheduler that was not heard of for longer is dead
    private static final long PAUSE = 5; // the library's is about 100 ms

    private final Connection redis;
    private final String name;
    private final String before; // the beginning of the names of all keys that are no locks
    private final Map<String, String> tokens = new HashMap<>(); // of the locks, one for each store

    Quartz(Connection redis, String name, String before) {
        this.redis = redis;
        this.name = name;
        this.before = before;
    }

    @Override
    public Object run(String operation, String key, String... arguments) throws IOException {
        switch (operation) {
            case "take":
                return take(key, arguments[0]);
            case "release":
                return release(key);
            case "states":
                return states(key);
            case "silent":
                return redis.call("HSET", data(key, "last_instance_active_time"), name, "0");
            default:
                return locked(key, operation, arguments);
        }
    }

    private Object take(String key, String ms) throws IOException {
        String wanted = UUID.randomUUID().toString();
        Object reply = redis.call("SET", key, wanted, "NX", "PX", ms);
        if (reply != null) {
            tokens.put(key, wanted);
        }
        return reply;
    }

    private boolean release(String key) throws IOException {
        Object holder = redis.call("GET", key);
        if (holder == null || !holder.equals(tokens.get(key))) {
            return false;
        }
        redis.call("DEL", key);
        return true;
    }

    /** Does one change of the store under its lock. */
    private Object locked(String key, String operation, String... arguments) throws IOException {
        String lock = key + ":lock";
        while (take(lock, LOCKED_FOR) == null) {
            pause();
        }
        try {
            return change(key, operation, arguments);
        } finally {
            release(lock);
        }
    }

    private static void pause() {
        try {
            Thread.sleep(PAUSE);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private Object change(String key, String operation, String... arguments) throws IOException {
        switch (operation) {
            case "store":
                return store(key, arguments[0], arguments[1], Long.parseLong(arguments[2]));
            case "remove":
                return remove(key, arguments[0]);
            case "acquire":
                return acquire(key, Long.parseLong(arguments[0]), arguments[1]);
            case "give-back":
                return giveBack(key, arguments[0]);
            case "pause":
                return moves(key, arguments[0], "blocked", "paused_blocked") || moves(key, arguments[0], "waiting", "paused");
            case "resume":
                return moves(key, arguments[0], "paused_blocked", "blocked") || moves(key, arguments[0], "paused", "waiting");
            case "fire":
                return fire(key, arguments[0], Long.parseLong(arguments[1]));
            case "complete":
                return complete(key, arguments[0]);
            case "recover":
                return recover(key);
            default:
                throw new IllegalArgumentException(operation);
        }
    }

    /** A trigger of a job; jobs whose names begin with "sole" must not run twice at once. */
    private Object store(String key, String trigger, String job, long fires) throws IOException {
        if (redis.call("EXISTS", data(key, "trigger:" + trigger)).equals(1L)) {
            return "is there already";
        }
        redis.pipeline(List.of(
            List.of("HMSET", data(key, "job:" + job), "class", job, "durable", "false"),
            List.of("DEL", data(key, "job_data_map:" + job)),
            List.of("SADD", data(key, "jobs"), job),
            List.of("HMSET", data(key, "trigger:" + trigger), "job", job, "nextFireTime", String.valueOf(fires)),
            List.of("SADD", data(key, "triggers"), trigger),
            List.of("SADD", data(key, "job_triggers:" + job), trigger)));
        List<Object> held = redis.pipeline(List.of(
            List.of("SISMEMBER", data(key, "paused_trigger_groups"), "group"),
            List.of("SISMEMBER", data(key, "blocked_jobs"), job)));
        boolean blocked = held.get(1).equals(1L) && alive(key, redis.call("GET", data(key, "job_blocked:" + job)));
        return become(key, trigger, blocked ? "blocked" : "waiting", fires);
    }

    private Object remove(String key, String trigger) throws IOException {
        Object job = redis.call("HGET", data(key, "trigger:" + trigger), "job");
        if (job == null) {
            return false;
        }
        redis.pipeline(List.of(
            List.of("SREM", data(key, "triggers"), trigger),
            List.of("SREM", data(key, "job_triggers:" + job), trigger)));
        List<Object> left = redis.pipeline(List.of(
            List.of("SCARD", data(key, "job_triggers:" + job)),
            List.of("EXISTS", data(key, "job:" + job))));
        if (left.equals(List.of(0L, 1L))) {
            redis.pipeline(List.of(
                List.of("DEL", data(key, "job:" + job)),
                List.of("DEL", data(key, "job_blocked:" + job)),
                List.of("SREM", data(key, "jobs"), (String) job),
                List.of("SREM", data(key, "blocked_jobs"), (String) job),
                List.of("SMEMBERS", data(key, "job_triggers:" + job))));
        }
        leave(key, trigger);
        return redis.call("DEL", data(key, "trigger:" + trigger));
    }

    /** Takes waiting triggers that fire by a time, of a job that must not run twice at once a single one. */
    private List<String> acquire(String key, long until, String count) throws IOException {
        redis.call("HSET", data(key, "last_instance_active_time"), name, String.valueOf(System.currentTimeMillis()));
        List<String> acquired = new ArrayList<>();
        List<Object> jobs = new ArrayList<>();
        List<?> due = (List<?>) redis.call(
            "ZRANGEBYSCORE", state(key, "waiting"), "0.0", String.valueOf((double) until), "LIMIT", "0", count, "WITHSCORES");
        for (int i = 0; i < due.size(); i += 2) {
            String trigger = (String) due.get(i);
            List<?> fields = (List<?>) redis.call("HGETALL", data(key, "trigger:" + trigger));
            String job = (String) fields.get(fields.indexOf("job") + 1);
            redis.call("HGETALL", data(key, "job:" + job));
            if (sole(job) && jobs.contains(job)) {
                continue;
            }
            jobs.add(job);
            become(key, trigger, "acquired", score(due.get(i + 1)));
            if (sole(job)) {
                lockTrigger(key, trigger);
            }
            acquired.add(trigger);
        }
        return acquired;
    }

    private Object giveBack(String key, String trigger) throws IOException {
        if (redis.call("ZSCORE", state(key, "acquired"), trigger) == null) {
            return "not acquired";
        }
        Object fires = redis.call("HGET", data(key, "trigger:" + trigger), "nextFireTime");
        return become(key, trigger, "waiting", score(fires));
    }

    /** Fires a trigger that was acquired; what else would start its job waits until that is complete. */
    private Object fire(String key, String trigger, long next) throws IOException {
        List<Object> is = redis.pipeline(List.of(
            List.of("EXISTS", data(key, "trigger:" + trigger)),
            List.of("ZSCORE", state(key, "acquired"), trigger)));
        if (is.get(0).equals(0L) || is.get(1) == null) {
            return "not acquired";
        }
        redis.call("HSET", data(key, "trigger:" + trigger), "nextFireTime", String.valueOf(next));
        become(key, trigger, "waiting", next);
        String job = (String) redis.call("HGET", data(key, "trigger:" + trigger), "job");
        if (sole(job)) {
            for (Object other : (List<?>) redis.call("SMEMBERS", data(key, "job_triggers:" + job))) {
                if (moves(key, (String) other, "waiting", "blocked") || moves(key, (String) other, "paused", "paused_blocked")) {
                    lockTrigger(key, (String) other);
                }
            }
            redis.pipeline(List.of(
                List.of("SET", data(key, "job_blocked:" + job), name),
                List.of("SADD", data(key, "blocked_jobs"), job)));
        }
        redis.call("HSET", data(key, "trigger:" + trigger), "previousFireTime", String.valueOf(System.currentTimeMillis()));
        return "fired";
    }

    private Object complete(String key, String trigger) throws IOException {
        String job = (String) redis.call("HGET", data(key, "trigger:" + trigger), "job");
        int unblocked = 0;
        if (sole(job)) {
            redis.pipeline(List.of(
                List.of("SREM", data(key, "blocked_jobs"), job),
                List.of("DEL", data(key, "job_blocked:" + job))));
            for (Object other : (List<?>) redis.call("SMEMBERS", data(key, "job_triggers:" + job))) {
                if (moves(key, (String) other, "blocked", "waiting") || moves(key, (String) other, "paused_blocked", "paused")) {
                    unblocked++;
                }
            }
        }
        return unblocked;
    }

    /** Gives back what schedulers had that are not heard of any more. */
    private Object recover(String key) throws IOException {
        List<String> recovered = new ArrayList<>();
        for (String from : List.of("acquired", "blocked")) {
            List<?> found = (List<?>) redis.call("ZRANGE", state(key, from), "0", "-1", "WITHSCORES");
            for (int i = 0; i < found.size(); i += 2) {
                String trigger = (String) found.get(i);
                if (!alive(key, redis.call("GET", lockOf(key, trigger)))) {
                    become(key, trigger, "waiting", score(found.get(i + 1)));
                    recovered.add(trigger);
                }
            }
        }
        redis.call("SET", data(key, "last_triggers_release_time"), String.valueOf(System.currentTimeMillis()));
        return recovered;
    }

    private boolean alive(String key, Object scheduler) throws IOException {
        if (scheduler == null) {
            return false;
        }
        Object heard = redis.call("HGET", data(key, "last_instance_active_time"), (String) scheduler);
        if (heard != null && System.currentTimeMillis() - Long.parseLong((String) heard) < ALIVE) {
            return true;
        }
        redis.call("HDEL", data(key, "last_instance_active_time"), (String) scheduler);
        return false;
    }

    private boolean moves(String key, String trigger, String from, String to) throws IOException {
        Object score = redis.call("ZSCORE", state(key, from), trigger);
        return score != null && become(key, trigger, to, score(score)).equals(1L);
    }

    private Object become(String key, String trigger, String state, double score) throws IOException {
        leave(key, trigger);
        return redis.call("ZADD", state(key, state), String.valueOf(score), trigger); // such as 1.7E12
    }

    /** A trigger has no state any more, and its lock goes with that. */
    private void leave(String key, String trigger) throws IOException {
        List<List<String>> removals = new ArrayList<>();
        for (String state : STATES) {
            removals.add(List.of("ZREM", state(key, state), trigger));
        }
        if (redis.pipeline(removals).contains(1L)) {
            redis.call("DEL", lockOf(key, trigger));
        }
    }

    private Object lockTrigger(String key, String trigger) throws IOException {
        return redis.call("SET", lockOf(key, trigger), name, "NX", "PX", TRIGGER_LOCKED_FOR);
    }

    /** All that the store holds, in an order that is the same everywhere. */
    private Object states(String key) throws IOException {
        List<String> all = new ArrayList<>();
        for (String state : STATES) {
            all.add(state + redis.call("ZRANGE", state(key, state), "0", "-1", "WITHSCORES"));
        }
        for (Object trigger : sorted(redis.call("SMEMBERS", data(key, "triggers")))) {
            Object holder = redis.call("GET", lockOf(key, (String) trigger));
            all.add(holder == null ? trigger + " is free" : trigger + " is locked by " + holder);
        }
        all.add("blocked" + sorted(redis.call("SMEMBERS", data(key, "blocked_jobs"))));
        return String.join("; ", all);
    }

    private static TreeSet<Object> sorted(Object members) {
        return new TreeSet<>((List<?>) members);
    }

    private static boolean sole(String job) {
        return job.startsWith("sole");
    }

    private static double score(Object text) {
        return Double.parseDouble((String) text);
    }

    private String data(String key, String rest) {
        return before + key + ":" + rest;
    }

    private String state(String key, String state) {
        return data(key, state + "_triggers");
    }

    private static String lockOf(String key, String trigger) {
        return key + ":trigger_lock:" + trigger;
    }
}
