<?php
// phpredis as a user of the proxy's own: users.php HOST PORT CA USER PASSWORD COMMAND…
//
// Sends each command, whose words stand together in one argument, and prints the reply or the error. CA is a file, or
// empty for no TLS.
[, $host, $port, $ca, $user, $password] = $argv;
foreach (array_slice($argv, 6) as $line) {
    $redis = new Redis();
    try {
        $context = $ca === '' ? [] : ['stream' => ['cafile' => $ca]];
        $redis->connect($ca === '' ? $host : "tls://$host", (int) $port, 10, null, 0, 10, $context);
        $redis->auth([$user, $password]);
        $reply = $redis->rawCommand(...explode(' ', $line));
        echo $redis->getLastError() ?? ($reply === true ? 'OK' : $reply), "\n";
    } catch (RedisException $error) {
        echo $error->getMessage(), "\n";
    }
}
