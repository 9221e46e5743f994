package harness

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrNoRedis is returned when there is no redis-server program to start.
var ErrNoRedis = errors.New("redis-server is not installed: apt-get install redis-server")

// errClosed is returned when a closed Redis is asked to start again.
var errClosed = errors.New("redis-server was closed")

const (
	redisStartTimeout = 10 * time.Second
	redisPollDelay    = 2 * time.Millisecond
	redisStartTries   = 3 // another process may take the chosen port first
	pauseTimeout      = time.Second
)

// RedisOptions say how to start a redis-server. The zero value is a server without persistence on 127.0.0.1.
type RedisOptions struct {
	Bind      string   // address to listen on; default 127.0.0.1
	ExtraArgs []string // further arguments of redis-server, e.g. "--requirepass", "secret"
}

// Redis is a real redis-server process. Its methods are not meant for concurrent use.
type Redis struct {
	program string
	bind    string
	port    int
	dir     string // its own; emptied by Restart, removed by Close
	extra   []string
	process *process
}

// StartRedis starts a redis-server on a free port and returns when it answers; ErrNoRedis when the program is missing.
func StartRedis(opts RedisOptions) (*Redis, error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, ErrNoRedis
	}
	r := &Redis{program: program, bind: opts.Bind, extra: opts.ExtraArgs}
	if r.bind == "" {
		r.bind = "127.0.0.1"
	}
	for range redisStartTries {
		if err = r.startOnFreePort(); err == nil {
			return r, nil
		}
	}
	return nil, err
}

// StartMasters starts n independent servers on 127.0.0.1, all or none.
func StartMasters(n int) ([]*Redis, error) {
	masters := make([]*Redis, 0, n)
	for range n {
		master, err := StartRedis(RedisOptions{})
		if err != nil {
			return nil, errors.Join(err, CloseAll(masters))
		}
		masters = append(masters, master)
	}
	return masters, nil
}

// CloseAll closes every server and returns all errors.
func CloseAll(servers []*Redis) error {
	var errs []error
	for _, server := range servers {
		errs = append(errs, server.Close())
	}
	return errors.Join(errs...)
}

// URLs returns the URL of every server.
func URLs(servers []*Redis) []string {
	urls := make([]string, len(servers))
	for i, server := range servers {
		urls[i] = server.URL()
	}
	return urls
}

// Addr returns host:port.
func (r *Redis) Addr() string { return net.JoinHostPort(r.bind, strconv.Itoa(r.port)) }

// URL returns redis://host:port.
func (r *Redis) URL() string { return "redis://" + r.Addr() }

// Log returns what the server has written since its last start (the last megabytes of it).
func (r *Redis) Log() string { return r.process.log.String() }

// Kill ends the server as a crash would (SIGKILL) and waits until it is gone. Killing a dead one does nothing.
func (r *Redis) Kill() error { return r.process.kill() }

// Pause stops the server (SIGSTOP): its connections stand, and nothing answers. It returns when the server has stopped.
func (r *Redis) Pause() error {
	if err := r.process.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return r.waitStopped()
}

// Continue lets a paused server go on with what it had received (SIGCONT).
func (r *Redis) Continue() error { return r.process.signal(syscall.SIGCONT) }

// Restart starts the server again on the same port, without its data. A living server is killed first.
func (r *Redis) Restart() error {
	if r.dir == "" {
		return errClosed
	}
	if err := r.Kill(); err != nil {
		return err
	}
	if err := emptyDir(r.dir); err != nil {
		return err
	}
	return r.start()
}

// Revive starts the server again on the same port, with the data that it left in its directory. A living server is killed first.
func (r *Redis) Revive() error {
	if r.dir == "" {
		return errClosed
	}
	if err := r.Kill(); err != nil {
		return err
	}
	return r.start()
}

// Close kills the server and removes its directory. It may be called again.
func (r *Redis) Close() error {
	if r.dir == "" {
		return nil
	}
	err := errors.Join(r.Kill(), os.RemoveAll(r.dir))
	r.dir = ""
	return err
}

// CPU returns the user and system time since the last start, in steps of 10 ms. It needs /proc and a living server.
func (r *Redis) CPU() (time.Duration, error) { return r.process.cpu() }

// RSS returns the resident memory in bytes. It needs /proc and a living server.
func (r *Redis) RSS() (int64, error) { return r.process.rss() }

// Descriptors returns the number of open file descriptors. It needs /proc and a living server.
func (r *Redis) Descriptors() (int, error) { return r.process.descriptors() }

// startOnFreePort makes the directory, picks a port and starts; nothing is left behind when that fails.
func (r *Redis) startOnFreePort() (err error) {
	if r.port, err = freePort(r.bind); err != nil {
		return err
	}
	if r.dir, err = os.MkdirTemp("", "redlock-redis-"); err != nil {
		return err
	}
	if err = r.start(); err != nil {
		return errors.Join(err, os.RemoveAll(r.dir))
	}
	return nil
}

// start runs the program and waits until it answers.
func (r *Redis) start() (err error) {
	if r.process, err = startProcess(r.program, r.arguments(), nil); err != nil {
		return err
	}
	if err = r.waitReady(); err != nil {
		return errors.Join(err, r.process.kill())
	}
	return nil
}

func (r *Redis) arguments() []string {
	args := []string{
		"--bind", r.bind, "--port", strconv.Itoa(r.port), "--dir", r.dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no", "--logfile", "",
	}
	return append(args, r.extra...)
}

// waitReady returns when the server answers PING.
func (r *Redis) waitReady() error {
	deadline := time.Now().Add(redisStartTimeout)
	for {
		err := r.ready()
		if err == nil {
			return nil
		}
		if r.process.ended() || time.Now().After(deadline) {
			return fmt.Errorf("redis-server on %s does not answer: %w; its log:\n%s", r.Addr(), err, r.Log())
		}
		time.Sleep(redisPollDelay)
	}
}

// ready asks once. A server that wants a password answers as well; one that is loading does not count.
func (r *Redis) ready() error {
	client, err := Dial(r.Addr(), redisStartTimeout)
	if err != nil {
		return err
	}
	defer client.Close()
	reply, err := client.Do("PING")
	if err != nil {
		return err
	}
	if failure, bad := reply.(RespError); bad {
		if strings.HasPrefix(string(failure), "NOAUTH") {
			return nil
		}
		return failure
	}
	return r.checkIdentity(client)
}

// checkIdentity makes sure that it was our process that answered, not another server that took the port first.
func (r *Redis) checkIdentity(client *Client) error {
	reply, err := client.Do("INFO", "server")
	if err != nil {
		return err
	}
	info, _ := reply.(string)
	if want := fmt.Sprintf("process_id:%d\r\n", r.process.pid()); !strings.Contains(info, want) {
		return fmt.Errorf("another server answers on %s", r.Addr())
	}
	return nil
}

// waitStopped waits until the kernel has really stopped the process. Without /proc it returns at once.
func (r *Redis) waitStopped() error {
	deadline := time.Now().Add(pauseTimeout)
	for {
		stat, err := readProcStat(r.process.pid())
		if errors.Is(err, os.ErrNotExist) || stat.state == "T" {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("redis-server %s does not stop: state %s: %w", r.Addr(), stat.state, ErrStillRunning)
		}
		time.Sleep(redisPollDelay)
	}
}

// emptyDir removes everything in dir.
func emptyDir(dir string) error {
	entries, err := os.ReadDir(dir)
	var errs []error
	for _, entry := range entries {
		errs = append(errs, os.RemoveAll(dir+string(os.PathSeparator)+entry.Name()))
	}
	return errors.Join(append(errs, err)...)
}
