//go:build integration

package operate

import (
	"bufio"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// startDemo runs demo on a free port. It returns the output up to the last line, and the process.
func startDemo(t *testing.T) (text string, demo *exec.Cmd) {
	t.Helper()
	demo = kit.ProxyCommand(t, "demo", "--listen", "127.0.0.1:0")
	stdout, err := demo.StdoutPipe()
	kit.Must(t, err)
	kit.Must(t, demo.Start())
	t.Cleanup(func() { _ = demo.Process.Kill() }) // the process may have ended already
	end := time.AfterFunc(kit.WaitLimit, func() { _ = demo.Process.Kill() })
	defer end.Stop()
	lines := bufio.NewReader(stdout)
	for !strings.Contains(text, "Ctrl-C") {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("demo ended with %v behind\n%s", err, text)
		}
		text += line
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	return text, demo
}

// TestDemo sends the commands that demo prints.
func TestDemo(t *testing.T) {
	text, demo := startDemo(t)
	port := regexp.MustCompile(`redis-cli -p (\d+) LOCK`).FindStringSubmatch(text)
	if port == nil {
		t.Fatalf("got\n%s\nwant to be told what to type", text)
	}
	client, err := redistest.Dial("127.0.0.1:"+port[1], kit.WaitLimit)
	kit.Must(t, err)
	defer client.Close()
	if !strings.Contains(text, "Its upstream is not a real Redis, but miniredis (127.0.0.1:") {
		t.Errorf("got\n%s\nwant it to say what the upstream is", text)
	}
	commands := 0
	for _, command := range regexp.MustCompile(`redis-cli -p \d+ (.*?)(  .*)?\n`).FindAllStringSubmatch(text, -1) {
		words := strings.Fields(strings.ReplaceAll(command[1], "'", ""))
		if words[len(words)-2] == "BLOCK" {
			// The wait is short, in milliseconds, because no client releases the lock.
			words[len(words)-1] = "10"
		}
		reply := kit.Do(t, client, words...)
		if failure, isError := reply.(redistest.RespError); isError {
			t.Errorf("%v: %v", words, failure)
		}
		t.Logf("%v → %v", words, reply)
		commands++
	}
	if commands < 7 {
		t.Errorf("only %d commands in\n%s", commands, text)
	}
	kit.WantReply(t, client, "LOCK k t PX 10000", kit.GrantReply)
	kit.Must(t, client.Close())
	kit.Must(t, demo.Process.Signal(syscall.SIGINT))
	if err := demo.Wait(); err != nil {
		t.Errorf("demo after Ctrl-C: %v, want exit code 0", err)
	}
}

// TestDemoExpiry checks that the embedded masters let locks expire.
func TestDemoExpiry(t *testing.T) {
	text, demo := startDemo(t)
	port := regexp.MustCompile(`redis-cli -p (\d+) LOCK`).FindStringSubmatch(text)
	client, err := redistest.Dial("127.0.0.1:"+port[1], kit.WaitLimit)
	kit.Must(t, err)
	defer client.Close()
	startedAt := time.Now()
	kit.WantGrant(t, client, "LOCK", "k", "t", "PX", "3000")
	kit.WantGrant(t, client, "LOCK", "k", "u", "PX", "10000", "BLOCK", "60000")
	if waited := time.Since(startedAt); waited < 2990*time.Millisecond {
		t.Errorf("the lock of 3000 ms was free after %v", waited)
	}
	kit.Must(t, demo.Process.Signal(syscall.SIGTERM))
	if err := demo.Wait(); err != nil {
		t.Errorf("demo after SIGTERM: %v, want exit code 0", err)
	}
}
