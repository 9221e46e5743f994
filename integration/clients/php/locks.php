<?php
// Lock libraries of PHP at the server HOST PORT as client NAME: php locks.php HOST PORT NAME
//
// Reads requests "DIALECT OPERATION KEY ARGUMENT…" line by line, and answers each with one line: what the library gave, or the
// class and the text of what it threw. Nothing is echoed: a session cannot start behind output.
declare(strict_types=1);

foreach (['Illuminate/Cache', 'Illuminate/Redis', 'Predis', 'Symfony/Component/Lock'] as $package) {
    require_once "$package/autoload.php";
}
foreach (['byhand', 'laravel', 'symfony', 'session'] as $file) {
    require_once __DIR__ . "/$file.php";
}

[, $host, $port, $name] = $argv;

function phpredis(string $host, int $port): Redis
{
    $redis = new Redis();
    $redis->connect($host, $port);
    return $redis;
}

$redis = phpredis($host, (int) $port);
$predis = new Predis\Client(['host' => $host, 'port' => (int) $port]);

$known = [
    'by-hand' => new ByHand($redis, $name),
    'by-hand-predis' => new ByHandPredis($predis, $name),
    'redlock-php' => new RedlockPhp($redis, $name),
    'laravel' => new Laravel('phpredis', $host, (int) $port),
    'laravel-predis' => new Laravel('predis', $host, (int) $port),
    'laravel-13' => new Laravel13($redis, $name),
    'laravel-6' => new Laravel6($redis, $name),
    'symfony-4' => new Symfony4($redis),
    'symfony' => new Symfony($redis),
    'session' => new Session($host, (int) $port),
];

function answer(array $known, string $request): string
{
    [$dialect, $operation, $key] = $words = explode(' ', $request);
    try {
        return var_export($known[$dialect]->{lcfirst(str_replace('-', '', ucwords($operation, '-')))}($key, ...array_slice($words, 3)), true);
    } catch (Throwable $e) {
        $cause = $e->getPrevious() ? ' <- ' . $e->getPrevious()->getMessage() : '';
        return get_class($e) . ': ' . $e->getMessage() . $cause;
    }
}

fwrite(STDOUT, "ready\n");
while (($request = fgets(STDIN)) !== false) {
    fwrite(STDOUT, preg_replace('/\s+/', ' ', answer($known, rtrim($request))) . "\n");
}
