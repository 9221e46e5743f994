package harness

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"redlock-proxy/internal/process"
	"redlock-proxy/internal/redistest"
)

// ErrNoProgram means that FindProgram did not find a program.
var ErrNoProgram = errors.New("program is not installed")

const (
	serverStartTimeout = time.Minute
	serverPollDelay    = 2 * time.Millisecond
	serverStartTries   = 3 // another process may take the chosen port first
)

// ServerOptions configures a program that serves TCP clients.
type ServerOptions struct {
	// Program is the name of the program. StartServer looks it up in PATH and in Debian's folders
	// for servers. It must stay in the foreground.
	Program string
	// Arguments returns the arguments with which the program listens on addr. It may write files
	// for the program to dir.
	Arguments func(addr, dir string) ([]string, error)
}

// Server controls a running program that serves TCP clients on 127.0.0.1, for example another proxy
// to compare with.
type Server struct {
	process *process.Process
	addr    string
	dir     string // the server's own; Close removes it
}

// StartServer starts the program on a free port and returns when it accepts connections. The error
// is ErrNoProgram if the program is missing.
func StartServer(opts ServerOptions) (*Server, error) {
	program, err := FindProgram(opts.Program)
	if err != nil {
		return nil, err
	}
	for range serverStartTries {
		var s *Server
		if s, err = startServer(program, opts.Arguments); err == nil {
			return s, nil
		}
	}
	return nil, err
}

// FindProgram returns the path of a program in PATH, or in the folders for servers, which only root
// has in PATH on Debian. The error is ErrNoProgram if the program is not found.
func FindProgram(name string) (string, error) {
	for _, path := range []string{name, "/usr/sbin/" + name, "/usr/local/sbin/" + name} {
		if found, err := exec.LookPath(path); err == nil {
			return found, nil
		}
	}
	return "", fmt.Errorf("%w: %s", ErrNoProgram, name)
}

// Addr returns the host:port on which the server listens.
func (s *Server) Addr() string { return s.addr }

// Log returns the server's output: the last 2 to 4 MB.
func (s *Server) Log() string { return s.process.Log() }

// CPU returns the user and system time since the start, in steps of 10 ms. It needs /proc and a
// running server.
func (s *Server) CPU() (time.Duration, error) { return s.process.CPU() }

// RSS returns the resident memory in bytes. It needs /proc and a running server.
func (s *Server) RSS() (int64, error) { return s.process.RSS() }

// Descriptors returns the number of open file descriptors. It needs /proc and a running server.
func (s *Server) Descriptors() (int, error) { return s.process.Descriptors() }

// Close kills the server and removes its files. It may be called again.
func (s *Server) Close() error { return errors.Join(s.process.Kill(), os.RemoveAll(s.dir)) }

// startServer starts the program on one port. If startServer fails, it removes the files.
func startServer(program string, arguments func(addr, dir string) ([]string, error)) (*Server, error) {
	addr, err := redistest.FreeAddr()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "redlock-server-")
	if err != nil {
		return nil, err
	}
	s := &Server{addr: addr, dir: dir}
	if err := s.start(program, arguments); err != nil {
		return nil, errors.Join(fmt.Errorf("%s on %s: %w", filepath.Base(program), addr, err), os.RemoveAll(dir))
	}
	return s, nil
}

// start runs the program and waits until it accepts connections.
func (s *Server) start(program string, arguments func(addr, dir string) ([]string, error)) error {
	args, err := arguments(s.addr, s.dir)
	if err != nil {
		return err
	}
	if s.process, err = process.Start(program, args, nil); err != nil {
		return err
	}
	if err := s.waitReady(); err != nil {
		return errors.Join(err, s.process.Kill())
	}
	return nil
}

// waitReady waits until the program accepts a connection.
func (s *Server) waitReady() error {
	for deadline := time.Now().Add(serverStartTimeout); ; time.Sleep(serverPollDelay) {
		conn, err := net.DialTimeout("tcp", s.addr, serverStartTimeout)
		if err == nil {
			_ = conn.Close()
		}
		switch {
		case s.process.Ended():
			return fmt.Errorf("ended at once; its log:\n%s", s.Log())
		case err == nil:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("accepts no connections: %w; its log:\n%s", err, s.Log())
		}
	}
}
