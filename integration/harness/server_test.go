package harness

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"redlock-proxy/internal/redistest"
)

// TestServer starts redis-server like any other program that serves TCP clients, with a file of its
// own.
func TestServer(t *testing.T) {
	redistest.New(t, redistest.Options{}) // skips without redis-server
	var folder string
	server, err := StartServer(ServerOptions{Program: "redis-server", Arguments: func(addr, dir string) ([]string, error) {
		folder = dir
		_, port, _ := strings.Cut(addr, ":")
		path := filepath.Join(dir, "redis.conf")
		return []string{path}, os.WriteFile(path, []byte("bind 127.0.0.1\nsave \"\"\nport "+port+"\n"), 0o600)
	}})
	must(t, err)
	client := dial(t, server.Addr())
	wantReply(t, client, "PONG", "PING")
	if runtime.GOOS == "linux" {
		wantOneMoreDescriptor(t, server)
	}
	must(t, server.Close())
	must(t, server.Close())
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its folder is still there: %v", err)
	}
	if reply, err := client.Do("PING"); err == nil {
		t.Errorf("it still answers: %v", reply)
	}
}

// wantOneMoreDescriptor fails the test unless the server has one more descriptor with one more
// client. It also checks that the server's memory and CPU time are plausible.
func wantOneMoreDescriptor(t *testing.T, server *Server) {
	t.Helper()
	before, err := server.Descriptors()
	must(t, err)
	wantReply(t, dial(t, server.Addr()), "PONG", "PING")
	if after, err := server.Descriptors(); after != before+1 || err != nil {
		t.Errorf("%d descriptors, %v; want %d and one more", after, err, before)
	}
	if rss, err := server.RSS(); rss < 1<<20 || err != nil {
		t.Errorf("it takes %d bytes, %v; want some megabytes", rss, err)
	}
	if cpu, err := server.CPU(); cpu < 0 || cpu > time.Minute || err != nil {
		t.Errorf("it took %v of CPU, %v", cpu, err)
	}
}

func TestStartServerErrors(t *testing.T) {
	nothing := func(string, string) ([]string, error) { return nil, nil }
	_, err := StartServer(ServerOptions{Program: writeScript(t, "echo cannot bind; exit 1"), Arguments: nothing})
	if err == nil || !strings.Contains(err.Error(), "cannot bind") {
		t.Errorf("%v; want an error with its output", err)
	}
	_, err = StartServer(ServerOptions{Program: "no-such-program", Arguments: nothing})
	if !errors.Is(err, ErrNoProgram) {
		t.Errorf("%v; want %v", err, ErrNoProgram)
	}
	_, err = StartServer(ServerOptions{Program: writeScript(t, "sleep 60"), Arguments: func(string, string) ([]string,
		error) {
		return nil, os.ErrInvalid
	}})
	if !errors.Is(err, os.ErrInvalid) {
		t.Errorf("%v; want the error of the arguments", err)
	}
}
