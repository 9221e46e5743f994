<?php
// phpredis or Predis as they connect by default, at the server HOST PORT: php connect.php phpredis|predis HOST PORT
//
// Prints a line "NAME RESULT" for each step, after "version VERSION"; connect_test.go knows what they are.
declare(strict_types=1);

const RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";

[, $library, $host, $port] = $argv;
if ($library === 'predis') {
    require_once getenv('PREDIS') ?: 'Predis/autoload.php';
}

function client(): Redis|Predis\Client
{
    global $library, $host, $port;
    if ($library === 'predis') {
        return new Predis\Client(['host' => $host, 'port' => (int) $port, 'read_write_timeout' => 20]);
    }
    $redis = new Redis();
    $redis->connect($host, (int) $port);
    return $redis;
}

// said is what a command of the library gives; an error of phpredis is false to all but getLastError.
function said(Redis|Predis\Client $client, string $command, mixed ...$args): mixed
{
    $said = $client->$command(...$args);
    if ($client instanceof Redis && $client->getLastError() !== null) {
        throw new RuntimeException($client->getLastError());
    }
    return $said instanceof Predis\Response\Status ? true : ($said ?? false);
}

function step(string $name, array $wanted, callable $run): void
{
    try {
        $said = $run();
        echo "$name ", $said === $wanted ? 'yes' : json_encode($said), "\n";
    } catch (RuntimeException | Predis\Response\ServerException $e) {
        echo "$name refused: {$e->getMessage()}\n";
    }
}

function life(string $key): array
{
    $one = client();
    $other = client();
    $take = fn ($client, string $token) => $client instanceof Redis
        ? said($client, 'set', $key, $token, ['nx', 'px' => 20000]) : said($client, 'set', $key, $token, 'PX', 20000, 'NX');
    $release = fn ($client, string $token) => $client instanceof Redis
        ? said($client, 'eval', RELEASE, [$key, $token], 1) : said($client, 'eval', RELEASE, 1, $key, $token);
    return [$take($one, 't'), $take($other, 'u'), said($other, 'get', $key), $release($other, 'u'), $release($one, 't')];
}

function pipeline(): array
{
    $client = client();
    $pipe = $client instanceof Redis ? $client->multi(Redis::PIPELINE) : $client->pipeline();
    foreach ([['get', 'lock:pipeline'], ['echo', 'hello'], ['del', 'lock:pipeline']] as [$command, $argument]) {
        $pipe->$command($argument);
    }
    return array_map(fn ($said) => $said ?? false, $client instanceof Redis ? $pipe->exec() : $pipe->execute());
}

function messages(): array
{
    $listener = client();
    if ($listener instanceof Redis) {
        // which waits for one reply at a time, so that another process sends the message
        global $host, $port;
        $child = '$r = new Redis(); $r->connect($argv[1], (int) $argv[2]); while ($r->publish("channel", "hello") < 1) { usleep(10000); }';
        proc_open([PHP_BINARY, '-r', $child, '--', $host, $port], [], $pipes);
        $got = [];
        try {
            $listener->subscribe(['channel'], function ($redis, $channel, $message) use (&$got) {
                $got = ['subscribe', 1, $message];
                $redis->close(); // nothing else ends it
            });
        } catch (RedisException) {
        }
        return $got;
    }
    $loop = $listener->pubSubLoop();
    $loop->subscribe('channel');
    $first = $loop->current();
    return [$first->kind, client()->publish('channel', 'hello'), $loop->current()->payload];
}

echo 'version ', $library === 'predis' ? Predis\Client::VERSION : phpversion('redis'), "\n";
step('lock', [true, false, 't', 0, 1], fn () => life('lock:first'));
step('other', [true, false, 't', 0, 1], fn () => life('data:first'));
step('pipeline', [false, 'hello', 0], fn () => pipeline());
step('messages', ['subscribe', 1, 'hello'], fn () => messages());
