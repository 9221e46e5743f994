<?php
// Locks as applications and small libraries write them.
declare(strict_types=1);

const REMOVE = 'if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end';
const PROLONG = 'if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("pexpire", KEYS[1], ARGV[2]) else return 0 end';

// ByHand is SET and EVAL over phpredis.
class ByHand
{
    protected string $token;

    public function __construct(protected Redis $redis, string $name)
    {
        $this->token = "token of $name";
    }

    public function take(string $key, string $ms): bool
    {
        return $this->redis->set($key, $this->token, ['nx', 'px' => (int) $ms]);
    }

    public function release(string $key): mixed
    {
        return $this->redis->eval(REMOVE, [$key, $this->token], 1);
    }

    public function extend(string $key, string $ms): mixed
    {
        return $this->redis->eval(PROLONG, [$key, $this->token, $ms], 1);
    }
}

// ByHandPredis is the same over Predis.
class ByHandPredis
{
    private string $token;

    public function __construct(private Predis\Client $redis, string $name)
    {
        $this->token = "predis of $name";
    }

    public function take(string $key, string $ms): bool
    {
        return (string) $this->redis->set($key, $this->token, 'PX', (int) $ms, 'NX') === 'OK';
    }

    public function release(string $key): mixed
    {
        return $this->redis->eval(REMOVE, 1, $key, $this->token);
    }

    public function extend(string $key, string $ms): mixed
    {
        return $this->redis->eval(PROLONG, 1, $key, $this->token, $ms);
    }
}

// RedlockPhp has a token for each grant, and releases also what it was refused. The library's token is uniqid() alone: the
// microsecond. Two clients that ask in the same one have the same token, and who is refused releases what the other was granted:
// once in a hundred contests of two, whatever stands behind. So the client's name stands before it here.
class RedlockPhp
{
    private array $tokens = [];

    public function __construct(private Redis $redis, private string $name)
    {
    }

    public function take(string $key, string $ms): bool
    {
        $token = uniqid($this->name);
        if ($this->redis->set($key, $token, ['NX', 'PX' => (int) $ms])) {
            $this->tokens[$key] = $token;
            return true;
        }
        $this->remove($key, $token);
        return false;
    }

    public function release(string $key): mixed
    {
        return $this->remove($key, $this->tokens[$key] ?? 'none');
    }

    private function remove(string $key, string $token): mixed
    {
        return $this->redis->eval(REMOVE, [$key, $token], 1);
    }
}
