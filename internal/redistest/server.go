package redistest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"redlock-proxy/internal/process"
)

// ErrNoRedis means that redis-server is not installed.
var ErrNoRedis = errors.New("redis-server is not installed; run apt-get install redis-server")

// errClosed means that the server was closed and cannot start again.
var errClosed = errors.New("redis-server was closed")

const (
	startTimeout = time.Minute
	pollDelay    = 2 * time.Millisecond
	startTries   = 3 // another process may take the chosen port first
	memoryDir    = "/dev/shm"
)

// Options configures a redis-server. The zero value is a server without persistence on 127.0.0.1.
type Options struct {
	// Version names a release; see Versions. The default is a version in REDLOCK_TEST_SERVERS, or
	// the installed version if that variable is empty.
	Version   string
	Bind      string   // address to listen on; default 127.0.0.1
	ExtraArgs []string // further arguments of redis-server, e.g. "--requirepass", "secret"
	Clock     *Clock   // wall clock; default: the machine's
	Env       []string // NAME=value, added to the environment of this process
	Socket    bool     // listen on a unix socket as well; see Server.Socket
	// InMemory puts the server's directory in memory, so that the server does not wait for a disk.
	// It has no effect if the machine has no file system in memory.
	InMemory bool
}

// Server runs a real redis-server process. Its methods are not safe for concurrent use.
type Server struct {
	requestedVersion string // Options.Version; empty: the default
	version          string
	program          string
	bind             string
	port             int
	dir              string // Restart empties it, Close removes it
	extraArgs        []string
	clock            *Clock
	env              []string // nil: the environment of this process
	socket           bool
	parentDir        string // of dir; empty: the machine's temporary directory
	process          *process.Process
}

// Start starts a redis-server on a free port and returns when the server answers. The error is
// ErrNoRedis if no program is installed, ErrNoVersion if scripts/versions has not fetched
// Options.Version.
func Start(opts Options) (*Server, error) {
	r := &Server{requestedVersion: opts.Version, bind: opts.Bind, extraArgs: opts.ExtraArgs, clock: opts.Clock, socket: opts.Socket}
	if r.bind == "" {
		r.bind = "127.0.0.1"
	}
	if len(opts.Env) > 0 {
		r.env = append(os.Environ(), opts.Env...)
	}
	if info, err := os.Stat(memoryDir); opts.InMemory && err == nil && info.IsDir() {
		r.parentDir = memoryDir
	}
	var err error
	for range startTries {
		if err = r.startOnFreePort(); err == nil {
			return r, nil
		}
	}
	return nil, err
}

// StartMasters starts n independent servers on 127.0.0.1. If it fails, no server is left running.
func StartMasters(n int) ([]*Server, error) {
	masters := make([]*Server, 0, n)
	for range n {
		master, err := Start(Options{})
		if err != nil {
			return nil, errors.Join(err, CloseAll(masters))
		}
		masters = append(masters, master)
	}
	return masters, nil
}

// CloseAll closes every server and returns all errors.
func CloseAll(servers []*Server) error {
	var errs []error
	for _, server := range servers {
		errs = append(errs, server.Close())
	}
	return errors.Join(errs...)
}

// URLs returns the URL of every server.
func URLs(servers []*Server) []string {
	urls := make([]string, len(servers))
	for i, server := range servers {
		urls[i] = server.URL()
	}
	return urls
}

// Addr returns host:port.
func (r *Server) Addr() string { return net.JoinHostPort(r.bind, strconv.Itoa(r.port)) }

// URL returns redis://host:port.
func (r *Server) URL() string { return "redis://" + r.Addr() }

// Version returns the server's version, for Options.Version.
func (r *Server) Version() string { return r.version }

// Socket returns the path of the unix socket; see Options.Socket.
func (r *Server) Socket() string { return filepath.Join(r.dir, "socket") }

// Dir returns the server's directory. It contains the append-only file, if the server writes one.
func (r *Server) Dir() string { return r.dir }

// Log returns the server's output since its last start: the last 2 to 4 MB.
func (r *Server) Log() string { return r.process.Log() }

// Kill ends the server as a crash would (SIGKILL) and waits until it has ended. It does nothing if
// the server has ended.
func (r *Server) Kill() error { return r.process.Kill() }

// Pause stops the server (SIGSTOP): its connections stay open, and it does not answer. Pause
// returns when the server has stopped.
func (r *Server) Pause() error { return r.process.Pause() }

// Continue lets a paused server continue (SIGCONT), with the commands that it has received.
func (r *Server) Continue() error { return r.process.Continue() }

// Restart starts the server again on the same port, without its data. It first kills a running
// server.
func (r *Server) Restart() error {
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

// RestartWithData starts the server again on the same port, with the files of its directory. It
// first kills a running server.
func (r *Server) RestartWithData() error {
	if r.dir == "" {
		return errClosed
	}
	if err := r.Kill(); err != nil {
		return err
	}
	return r.start()
}

// RestartWithVersion starts the server again as RestartWithData does, with the program of another
// release; see Options.Version.
func (r *Server) RestartWithVersion(version string) (err error) {
	if r.program, err = programOf(version); err != nil {
		return err
	}
	r.version = version
	return r.RestartWithData()
}

// Close kills the server and removes its directory. It may be called again.
func (r *Server) Close() error {
	if r.dir == "" {
		return nil
	}
	err := errors.Join(r.Kill(), os.RemoveAll(r.dir))
	r.dir = ""
	return err
}

// CPU returns the user and system time since the last start, in steps of 10 ms. It needs /proc and
// a running server.
func (r *Server) CPU() (time.Duration, error) { return r.process.CPU() }

// RSS returns the resident memory in bytes. It needs /proc and a running server.
func (r *Server) RSS() (int64, error) { return r.process.RSS() }

// Descriptors returns the number of open file descriptors. It needs /proc and a running server.
func (r *Server) Descriptors() (int, error) { return r.process.Descriptors() }

// startOnFreePort makes the directory, chooses a port and starts the server. If it fails, it
// removes the directory.
func (r *Server) startOnFreePort() (err error) {
	if r.port, err = freePort(r.bind); err != nil {
		return err
	}
	r.version = versionAt(r.requestedVersion, r.port)
	if r.program, err = programOf(r.version); err != nil {
		return err
	}
	if r.dir, err = os.MkdirTemp(r.parentDir, "redlock-redis-"); err != nil {
		return err
	}
	if err = r.start(); err != nil {
		return errors.Join(err, os.RemoveAll(r.dir))
	}
	return nil
}

// environment returns the environment of the server; nil means the environment of this process.
func (r *Server) environment() []string {
	if r.clock != nil {
		return append(r.clock.environment(), r.env...)
	}
	return r.env
}

// start runs the program and waits until it answers.
func (r *Server) start() (err error) {
	if r.process, err = process.Start(r.program, r.arguments(), r.environment()); err != nil {
		return err
	}
	if err = r.waitReady(); err != nil {
		return errors.Join(err, r.process.Kill())
	}
	return nil
}

func (r *Server) arguments() []string {
	args := []string{
		"--bind", r.bind, "--port", strconv.Itoa(r.port), "--dir", r.dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no", "--logfile", "",
	}
	if r.socket {
		args = append(args, "--unixsocket", r.Socket())
	}
	return append(args, r.extraArgs...)
}

// waitReady waits until the server answers PING.
func (r *Server) waitReady() error {
	deadline := time.Now().Add(startTimeout)
	for {
		err := r.checkReady()
		if err == nil {
			return nil
		}
		if r.process.Ended() || time.Now().After(deadline) {
			return fmt.Errorf("redis-server on %s does not answer: %w; its log:\n%s", r.Addr(), err, r.Log())
		}
		time.Sleep(pollDelay) // polls
	}
}

// checkReady sends one PING. A server that requires a password is ready; a server that is loading
// its data is not.
func (r *Server) checkReady() error {
	client, err := Dial(r.Addr(), startTimeout)
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

// checkIdentity returns an error if another server took the port first and has answered.
func (r *Server) checkIdentity(client *Client) error {
	reply, err := client.Do("INFO", "server")
	if err != nil {
		return err
	}
	info, _ := reply.(string)
	if want := fmt.Sprintf("process_id:%d\r\n", r.process.PID()); !strings.Contains(info, want) {
		return fmt.Errorf("another server answers on %s", r.Addr())
	}
	return nil
}

func emptyDir(dir string) error {
	entries, err := os.ReadDir(dir)
	var errs []error
	for _, entry := range entries {
		errs = append(errs, os.RemoveAll(dir+string(os.PathSeparator)+entry.Name()))
	}
	return errors.Join(append(errs, err)...)
}
