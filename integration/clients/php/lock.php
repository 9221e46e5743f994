<?php
// phpredis against a running redlock-proxy: php lock.php HOST PORT
//
// Prints "ok NAME" for each check, and stops with exit code 1 at the first that fails.
// phpredis gives false for nil and for an error alike; getLastError tells them apart.
declare(strict_types=1);

[, $host, $port] = $argv;
$prefix = 'php:' . bin2hex(random_bytes(4)) . ':';

function connect(): Redis
{
    global $host, $port;
    $redis = new Redis();
    $redis->connect($host, (int) $port);
    return $redis;
}

function fail(string $what, string $wanted, mixed $got): never
{
    throw new Exception("$what: expected $wanted, got " . var_export($got, true));
}

function expect(string $what, mixed $wanted, mixed $got): void
{
    if ($wanted !== $got) {
        fail($what, var_export($wanted, true), $got);
    }
}

function expectBetween(string $what, float $low, float $high, mixed $got): void
{
    if (!(is_int($got) || is_float($got)) || $got <= $low || $got > $high) {
        fail($what, "a number in ($low..$high]", $got);
    }
}

function expectNil(string $what, Redis $redis, mixed $got): void
{
    expect("error of $what", null, $redis->getLastError());
    expect($what, false, $got);
}

function expectError(string $wanted, string ...$command): void
{
    $redis = connect();
    expect(implode(' ', $command), false, $redis->rawCommand(...$command));
    expect(implode(' ', $command), $wanted, $redis->getLastError());
}

// fields makes a map of RESP2's keys and values in a row.
function fields(array $reply): array
{
    $map = [];
    foreach (array_chunk($reply, 2) as [$key, $value]) {
        $map[$key] = $value;
    }
    return $map;
}

function check(string $name, callable $run): void
{
    try {
        $run();
    } catch (Throwable $e) {
        fwrite(STDERR, "FAILED $name: " . get_class($e) . ': ' . $e->getMessage() . "\n");
        exit(1);
    }
    echo "ok $name\n";
}

// unlockLater unlocks in a process of its own after some milliseconds, as PHP waits for one reply at a time.
function unlockLater(int $ms, string $key, string $token): void
{
    $child = 'usleep(1000 * (int) $argv[3]); $r = new Redis(); $r->connect($argv[1], (int) $argv[2]);'
        . ' $r->rawCommand("UNLOCK", $argv[4], $argv[5]);';
    global $host, $port;
    proc_open([PHP_BINARY, '-r', $child, '--', $host, $port, (string) $ms, $key, $token], [], $pipes);
}

$redis = connect();
// A PING without a message is true to phpredis, whatever the reply says.
check('ping', fn () => expect('PING hi', 'hi', $redis->ping('hi')));

$life = "{$prefix}life";
check('lock', fn () => expectBetween('LOCK', 9000, 10000, $redis->rawCommand('LOCK', $life, 't', 'PX', 10000)));
check('held', fn () => expectNil('LOCK by another', $redis, $redis->rawCommand('LOCK', $life, 't2', 'PX', 10000)));
check('unlock-wrong-token', fn () => expect('UNLOCK by another', 0, $redis->rawCommand('UNLOCK', $life, 't2')));
check('extend', fn () => expectBetween('EXTEND', 9000, 10000, $redis->rawCommand('EXTEND', $life, 't', 'PX', 10000)));
check('unlock', fn () => expect('UNLOCK', 1, $redis->rawCommand('UNLOCK', $life, 't')));
check('extend-after-unlock', fn () => expectNil('EXTEND', $redis, $redis->rawCommand('EXTEND', $life, 't', 'PX', 10000)));

check('made-token', function () use ($redis, $prefix) {
    $got = fields($redis->rawCommand('LOCK', "{$prefix}made", '*', 'EX', 5));
    expectBetween('validity', 4000, 5000, $got['validity']);
    expect("32 hexadecimal digits in {$got['token']}", 1, preg_match('/\A[0-9a-f]{32}\z/', $got['token']));
    expect('UNLOCK with the token made', 1, $redis->rawCommand('UNLOCK', "{$prefix}made", $got['token']));
});

check('block-runs-out', function () use ($redis, $prefix) {
    $redis->rawCommand('LOCK', "{$prefix}out", 't', 'PX', 10000);
    $start = microtime(true);
    $got = $redis->rawCommand('LOCK', "{$prefix}out", 't2', 'PX', 1000, 'BLOCK', 200);
    expectBetween('seconds waited', 0.19, 9, microtime(true) - $start);
    expectNil('LOCK BLOCK 200', $redis, $got);
    $redis->rawCommand('UNLOCK', "{$prefix}out", 't');
});

check('block-served', function () use ($redis, $prefix) {
    $redis->rawCommand('LOCK', "{$prefix}served", 't', 'PX', 60000);
    unlockLater(300, "{$prefix}served", 't');
    $start = microtime(true);
    $got = $redis->rawCommand('LOCK', "{$prefix}served", 't2', 'PX', 10000, 'BLOCK', 30000);
    expectBetween('seconds waited', 0.25, 25, microtime(true) - $start);
    expectBetween('validity after waiting', 9000, 10000, $got);
    expect('UNLOCK by the waiter', 1, $redis->rawCommand('UNLOCK', "{$prefix}served", 't2'));
});

check('error-expire', fn () => expectError("ERR invalid expire time in 'lock' command", 'LOCK', 'k', 't', 'PX', '0'));
check('error-arity', fn () => expectError("ERR wrong number of arguments for 'lock' command: LOCK key token PX milliseconds|EX seconds [SHARED|SLOTS slots] [KEEPALIVE [MAXHOLD milliseconds]] [BLOCK milliseconds] [FENCE] [AT]", 'LOCK', 'k', 't'));
check('error-unknown', fn () => expectError(
    "ERR unknown command 'FOO', with args beginning with: 'a' 'b' ", 'FOO', 'a', 'b'));

// The same key in two databases is two locks.
check('select', function () use ($prefix) {
    $bases = [connect(), connect()];
    expect('SELECT 1', true, $bases[1]->select(1));
    foreach ($bases as $n => $base) {
        $got = $base->rawCommand('LOCK', "{$prefix}db", "t$n", 'PX', 10000);
        expectBetween("LOCK in database $n", 9000, 10000, $got);
    }
    foreach ($bases as $n => $base) {
        expect("UNLOCK in database $n", 1, $base->rawCommand('UNLOCK', "{$prefix}db", "t$n"));
    }
});

check('pipeline', function () use ($redis, $prefix) {
    $pipe = $redis->multi(Redis::PIPELINE);
    $pipe->rawCommand('LOCK', "{$prefix}pipe", 't', 'PX', 10000);
    $pipe->rawCommand('UNLOCK', "{$prefix}pipe", 't');
    $pipe->ping('hi');
    [$validity, $unlocked, $pong] = $pipe->exec();
    expectBetween('LOCK', 9000, 10000, $validity);
    expect('UNLOCK, PING hi', [1, 'hi'], [$unlocked, $pong]);
});

check('name', function () use ($redis) {
    expect('CLIENT SETNAME', true, $redis->client('setname', 'worker-7'));
    expect('CLIENT GETNAME', 'worker-7', $redis->client('getname'));
});
