<?php
// Session is the lock that phpredis holds while a session is open.
declare(strict_types=1);

class Session
{
    private string $path;
    private string $warning = '';

    public function __construct(string $host, int $port)
    {
        $this->path = "tcp://$host:$port";
        set_error_handler(function (int $level, string $text): bool {
            $this->warning = $text;
            return true;
        });
    }

    // open waits for the session's lock.
    public function open(string $key, string $ms): mixed
    {
        return $this->start($key, $ms, -1);
    }

    // try opens the session without its lock, if that is held.
    public function try(string $key, string $ms): mixed
    {
        return $this->start($key, $ms, 1);
    }

    // close writes the session, which fails without its lock, and tells how often it was visited.
    public function close(string $key): mixed
    {
        $_SESSION['visits'] = ($_SESSION['visits'] ?? 0) + 1;
        $this->warning = '';
        session_write_close();
        return [$_SESSION['visits'], str_replace($this->path, 'PATH', $this->warning)];
    }

    private function start(string $key, string $ms, int $retries): mixed
    {
        $settings = [
            'session.save_handler' => 'redis', 'session.save_path' => $this->path, 'session.use_cookies' => '0',
            'session.cache_limiter' => '', 'redis.session.locking_enabled' => '1', 'redis.session.lock_retries' => (string) $retries,
            'redis.session.lock_wait_time' => '5000', 'redis.session.lock_expire' => (string) intdiv((int) $ms, 1000),
        ];
        foreach ($settings as $setting => $value) {
            ini_set($setting, $value);
        }
        $this->warning = '';
        session_id(strtr($key, ':', '-'));
        return [session_start(), $this->warning];
    }
}
