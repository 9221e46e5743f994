package browser

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"redlock-proxy/internal/redistest"
)

// replyTimeout limits the wait for each reply of Chromium.
const replyTimeout = time.Minute

// errEnded means that Chromium ended before it replied to a request.
var errEnded = errors.New("chromium has ended")

// Browser controls a Chromium, and closes it when the test ends.
type Browser struct {
	requestPipe *os.File

	mu       sync.Mutex
	ended    bool
	lastID   int
	replies  map[int]chan message
	handlers map[string]func(method string, params json.RawMessage) // by session
}

// message is a message of the protocol, in either direction.
type message struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *messageError   `json:"error,omitempty"`
}

type messageError struct {
	Message string `json:"message"`
}

// chromiumPath returns the path of Chromium, whose program has several names. If all of them are
// missing, chromiumPath skips the test.
func chromiumPath(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	redistest.SkipMissing(t, "chromium")
	return ""
}

// Start starts a Chromium with its own profile.
func Start(t testing.TB) *Browser {
	t.Helper()
	fromUs, toChromium, err := os.Pipe()
	must(t, err)
	fromChromium, toUs, err := os.Pipe()
	must(t, err)
	cmd := exec.Command(chromiumPath(t),
		"--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
		"--user-data-dir="+t.TempDir(), "--remote-debugging-pipe", "about:blank")
	cmd.ExtraFiles = []*os.File{fromUs, toUs} // descriptors 3 and 4
	must(t, cmd.Start())
	must(t, errors.Join(fromUs.Close(), toUs.Close()))
	b := &Browser{
		requestPipe: toChromium, replies: map[int]chan message{},
		handlers: map[string]func(string, json.RawMessage){},
	}
	done := make(chan struct{})
	go func() { defer close(done); b.readMessages(fromChromium) }()
	t.Cleanup(func() {
		_, _ = b.send("", "Browser.close", nil) // also ends its child processes
		timer := time.AfterFunc(replyTimeout, func() { _ = cmd.Process.Kill() })
		defer timer.Stop()
		_ = cmd.Wait()
		_, _ = toChromium.Close(), fromChromium.Close()
		<-done
	})
	return b
}

// readMessages handles the messages of Chromium until Chromium ends.
func (b *Browser) readMessages(from *os.File) {
	for reader := bufio.NewReader(from); ; {
		text, err := reader.ReadBytes(0)
		if err != nil {
			b.end()
			return
		}
		var m struct {
			message
			Params json.RawMessage `json:"params"`
		}
		if json.Unmarshal(text[:len(text)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		answer, handle := b.replies[m.ID], b.handlers[m.Session]
		delete(b.replies, m.ID)
		b.mu.Unlock()
		switch {
		case answer != nil:
			answer <- m.message
		case handle != nil:
			handle(m.Method, m.Params)
		}
	}
}

func (b *Browser) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	for _, answer := range b.replies {
		answer <- message{Error: &messageError{errEnded.Error()}}
	}
	clear(b.replies)
}

// send sends a request to Chromium, or to a page if session is not empty, and waits for the reply.
func (b *Browser) send(session, method string, params any) (json.RawMessage, error) {
	answer := make(chan message, 1)
	b.mu.Lock()
	if b.ended {
		b.mu.Unlock()
		return nil, errEnded
	}
	b.lastID++
	m := message{ID: b.lastID, Session: session, Method: method, Params: params}
	b.replies[m.ID] = answer
	text, err := json.Marshal(m)
	if err == nil {
		_, err = b.requestPipe.Write(append(text, 0))
	}
	b.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case got := <-answer:
		if got.Error != nil {
			return nil, fmt.Errorf("%s: %s", method, got.Error.Message)
		}
		return got.Result, nil
	case <-time.After(replyTimeout):
		return nil, fmt.Errorf("%s: no answer within %v", method, replyTimeout)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
