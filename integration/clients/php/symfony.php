<?php
// Symfony's locks.
declare(strict_types=1);

use Symfony\Component\Lock\Exception\LockConflictedException;

// Symfony4 is the store of Symfony 4.4 and 5.1: a string, taken again by whom it belongs to.
class Symfony4
{
    private const SAVE = <<<'LUA'
        local holder = redis.call("GET", KEYS[1])
        if holder == ARGV[1] then
            return redis.call("PEXPIRE", KEYS[1], ARGV[2])
        end
        if redis.call("SET", KEYS[1], ARGV[1], "NX", "PX", ARGV[2]) then
            return 1
        end
        return 0
        LUA;

    private array $tokens = [];

    public function __construct(private Redis $redis)
    {
    }

    public function take(string $key, string $ms): string
    {
        $this->tokens[$key] ??= base64_encode(random_bytes(32));
        $this->refuseZero($this->run(self::SAVE, $key, $ms));
        return 'granted';
    }

    public function extend(string $key, string $ms): string
    {
        $this->refuseZero($this->run(PROLONG, $key, $ms));
        return 'extended';
    }

    public function release(string $key): mixed
    {
        return $this->run(REMOVE, $key);
    }

    public function exists(string $key): bool
    {
        return $this->redis->get($key) === ($this->tokens[$key] ?? '');
    }

    private function run(string $script, string $key, string ...$arguments): mixed
    {
        return $this->redis->eval($script, [$key, $this->tokens[$key] ?? 'none', ...$arguments], 1);
    }

    private function refuseZero(mixed $given): void
    {
        if ($given !== 1) {
            throw new LockConflictedException('got ' . var_export($given, true));
        }
    }
}

// Symfony is the library itself, since 5.2 with a sorted set.
class Symfony
{
    private Symfony\Component\Lock\LockFactory $factory;
    private array $locks = [];

    public function __construct(Redis $redis)
    {
        $this->factory = new Symfony\Component\Lock\LockFactory(new Symfony\Component\Lock\Store\RedisStore($redis));
    }

    public function take(string $key, string $ms): bool
    {
        $this->locks[$key] = $this->factory->createLock($key, (int) $ms / 1000, false);
        return $this->locks[$key]->acquire();
    }

    public function release(string $key): void
    {
        $this->locks[$key]->release();
    }
}
