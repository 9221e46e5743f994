<?php
// The cluster client of phpredis or Predis, which knows only the node HOST PORT:
// php cluster.php phpredis|predis HOST PORT NAME
//
// Prints "ready", then reads lines of JSON, each with a key and the words of a command, and prints each reply as JSON;
// cluster_test.go knows the commands.
declare(strict_types=1);

[, $library, $host, $port] = $argv;

function client(): RedisCluster|Predis\Client
{
    global $library, $host, $port;
    if ($library === 'predis') {
        require_once 'Predis/autoload.php';
        return new Predis\Client(["tcp://$host:$port?read_write_timeout=10"], ['cluster' => 'redis']);
    }
    return new RedisCluster(null, ["$host:$port"], 10, 10);
}

function reply(RedisCluster|Predis\Client $client, array $words): mixed
{
    if ($client instanceof Predis\Client) {
        $reply = $client->executeCommand($client->createCommand(array_shift($words), $words));
        return $reply instanceof Predis\Response\Status ? $reply->getPayload() : $reply;
    }
    $client->clearLastError();
    $reply = call($client, array_shift($words), $words);
    return $client->getLastError() === null ? $reply : ['error' => $client->getLastError()];
}

// call runs a command by its method: phpredis' rawCommand follows no redirect.
function call(RedisCluster $client, string $command, array $args): mixed
{
    return match ($command) {
        'SET' => count($args) === 2 ? $client->set(...$args) : $client->set($args[0], $args[1], ['nx', 'px' => (int) $args[4]]),
        'INCRBY' => $client->incrBy($args[0], (int) $args[1]),
        'LRANGE' => $client->lRange($args[0], (int) $args[1], (int) $args[2]),
        'MSET' => $client->mSet([$args[0] => $args[1], $args[2] => $args[3]]),
        'MGET' => $client->mGet($args),
        'EVAL' => $client->eval($args[0], array_slice($args, 2), (int) $args[1]),
        default => $client->$command(...$args),
    };
}

$client = client();
echo "ready\n";
while (($line = fgets(STDIN)) !== false) {
    $words = json_decode($line);
    array_shift($words); // the key
    try {
        $reply = reply($client, $words);
    } catch (RedisClusterException | Predis\PredisException $e) {
        $reply = ['error' => $e->getMessage()];
    }
    echo json_encode($reply), "\n";
}
