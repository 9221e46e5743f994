<?php
// Laravel's locks.
declare(strict_types=1);

// Laravel is the library itself, through its cache store.
class Laravel
{
    private Illuminate\Cache\RedisStore $store;
    private array $locks = [];

    public function __construct(string $driver, string $host, int $port)
    {
        $config = ['default' => ['host' => $host, 'port' => $port, 'database' => 0]];
        $this->store = new Illuminate\Cache\RedisStore(new Illuminate\Redis\RedisManager(null, $driver, $config), 'lock');
    }

    // take with 0 milliseconds is the library's default: no time to live.
    public function take(string $key, string $ms): bool
    {
        $lock = $this->store->lock($this->name($key), intdiv((int) $ms, 1000));
        if (!$lock->get()) {
            return false;
        }
        $this->locks[$key] = $lock;
        return true;
    }

    // again asks with the same owner, which is refused as well.
    public function again(string $key): bool
    {
        return $this->locks[$key]->get();
    }

    public function release(string $key): mixed
    {
        return isset($this->locks[$key]) ? $this->locks[$key]->release() : 'not held';
    }

    // takeAs names the owner, by which another process can make the same lock again.
    public function takeAs(string $key, string $ms, string $owner): bool
    {
        return $this->store->lock($this->name($key), intdiv((int) $ms, 1000), $owner)->get();
    }

    public function releaseAs(string $key, string $owner): bool
    {
        return $this->store->restoreLock($this->name($key), $owner)->release();
    }

    public function forceRelease(string $key): void
    {
        $this->store->lock($this->name($key))->forceRelease();
    }

    public function wait(string $key, string $ms, string $patience): bool
    {
        $lock = $this->store->lock($this->name($key), intdiv((int) $ms, 1000))->betweenBlockedAttemptsSleepFor(10);
        $this->locks[$key] = $lock;
        return $lock->block(intdiv((int) $patience, 1000));
    }

    // name is the key without the prefix of the store.
    private function name(string $key): string
    {
        return substr($key, strlen('lock:'));
    }
}

// Laravel13 can refresh a lock, also to last for ever.
class Laravel13 extends ByHand
{
    private const REFRESH = <<<'LUA'
        if redis.call('get', KEYS[1]) ~= ARGV[1] then
            return 0
        end
        if tonumber(ARGV[2]) > 0 then
            return redis.call('expire', KEYS[1], ARGV[2])
        end
        redis.call('persist', KEYS[1])
        return 1
        LUA;

    public function take(string $key, string $ms): bool
    {
        if ((int) $ms === 0) {
            return (bool) $this->redis->setnx($key, $this->token);
        }
        return $this->redis->set($key, $this->token, ['NX', 'EX' => intdiv((int) $ms, 1000)]);
    }

    public function extend(string $key, string $ms): mixed
    {
        return $this->redis->eval(self::REFRESH, [$key, $this->token, intdiv((int) $ms, 1000)], 1);
    }
}

// Laravel6 sends the time to live in a second command.
class Laravel6 extends ByHand
{
    public function take(string $key, string $ms): bool
    {
        $granted = $this->redis->setnx($key, $this->token);
        if ($granted && (int) $ms > 0) {
            $this->redis->expire($key, intdiv((int) $ms, 1000));
        }
        return $granted;
    }
}
