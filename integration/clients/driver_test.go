//go:build integration

package clients

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
)

// driverTimeout limits the start of a program, and one request to a lock library, which may wait for
// other clients.
const driverTimeout = 2 * time.Minute

var errDriverTimeout = errors.New("the program answers nothing")

// driver is a running program that acts as one client, with the lock libraries of its language. It
// reads one request "dialect operation key argument…" per line. Its reply is one line: the result
// or the exception of the library.
type driver struct {
	name    string
	process *os.Process
	stdin   io.Writer
	replies chan string
	stderr  *bytes.Buffer    // may be read when replies is closed
	state   *os.ProcessState // how the program has ended; may be read when replies is closed
}

// findProgram returns the client program with that name. Lock programs use the same interpreter and
// library.
func findProgram(t *testing.T, name string) program {
	t.Helper()
	list := programs()
	index := slices.IndexFunc(list, func(c program) bool { return c.name == name })
	if index < 0 {
		t.Fatalf("no client program %s", name)
	}
	return list[index]
}

// startDriver runs a program with HOST PORT NAME after its arguments, until the test ends.
func startDriver(t *testing.T, addr, name string, command ...string) *driver {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	kit.Must(t, err)
	d := startProgram(t, name, exec.Command(command[0], append(command[1:], host, port, name)...))
	if ready, err := d.awaitReply(); err != nil || ready != "ready" {
		t.Fatalf("%v: got %q, %v, want ready", command, ready, err)
	}
	return d
}

// startProgram runs a program until the test ends.
func startProgram(t *testing.T, name string, cmd *exec.Cmd) *driver {
	t.Helper()
	cmd.Env = environment()
	cmd.WaitDelay = time.Second
	d := &driver{name: name, replies: make(chan string, 1), stderr: new(bytes.Buffer)}
	cmd.Stderr = d.stderr
	stdin, err := cmd.StdinPipe()
	kit.Must(t, err)
	stdout, err := cmd.StdoutPipe()
	kit.Must(t, err)
	kit.Must(t, cmd.Start())
	d.stdin, d.process = stdin, cmd.Process
	ended := make(chan struct{})
	go d.read(cmd, stdout, ended)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	return d
}

// read passes on the program's lines until the program ends.
func (d *driver) read(cmd *exec.Cmd, stdout io.Reader, ended chan<- struct{}) {
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		d.replies <- lines.Text()
	}
	_ = cmd.Wait() // the test kills the program at its end; if it ends earlier, replies are missing
	d.state = cmd.ProcessState
	close(d.replies)
	close(ended)
}

// ask sends one request and returns the reply.
func (d *driver) ask(request ...string) (string, error) {
	err := d.send(request...)
	reply := ""
	if err == nil || errors.Is(err, os.ErrClosed) { // a program that has ended has no standard input
		reply, err = d.awaitReply()
	}
	if err != nil {
		return "", fmt.Errorf("client %s, %q: %w", d.name, request, err)
	}
	return reply, nil
}

// send sends a request. awaitReply returns the reply.
func (d *driver) send(request ...string) error {
	_, err := io.WriteString(d.stdin, strings.Join(request, " ")+"\n")
	return err
}

// awaitReply waits for the next line.
func (d *driver) awaitReply() (string, error) {
	timer := time.NewTimer(driverTimeout)
	defer timer.Stop()
	select {
	case reply, ok := <-d.replies:
		if !ok {
			return "", fmt.Errorf("the program has ended: %s: %s", d.state, d.stderr)
		}
		return reply, nil
	case <-timer.C:
		return "", errDriverTimeout
	}
}
