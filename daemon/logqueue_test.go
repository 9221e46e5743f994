package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"redlock-proxy/conf"
)

// blockedWriter implements io.Writer. It blocks until unblockSignal is closed.
type blockedWriter struct {
	unblockSignal chan struct{}
	writeStarted  chan struct{} // receives a value when a write begins; nil if not used
	mu            sync.Mutex
	out           bytes.Buffer
	err           error
}

func (s *blockedWriter) Write(line []byte) (int, error) {
	select {
	case s.writeStarted <- struct{}{}:
	case <-s.unblockSignal:
	}
	<-s.unblockSignal
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out.Write(line)
	return len(line), s.err
}

// TestLogWithBlockedWriter checks that logging never waits, and that a line reports dropped lines.
func TestLogWithBlockedWriter(t *testing.T) {
	for _, form := range []string{"text", "json"} {
		reader := &blockedWriter{unblockSignal: make(chan struct{}), writeStarted: make(chan struct{})}
		cfg := conf.Default()
		cfg.LogFormat = form
		logs, err := NewLogs(reader, cfg)
		if err != nil {
			t.Fatal(err)
		}
		log := logs.Logger()
		log.Info("first")
		// Without this wait, lines would be dropped both before and after the first lines are
		// written.
		<-reader.writeStarted
		const lines = 100
		for i := range lines {
			log.Info("long", "i", i, "x", strings.Repeat("x", maxLogQueue/20))
		}
		dropped := logs.droppedLines()
		if dropped < lines/2 || dropped >= lines {
			t.Errorf("%d lines were dropped", dropped)
		}
		close(reader.unblockSignal)
		logs.queue.Close()
		<-logs.queue.done // on a busy machine Close does not wait for all lines
		out := reader.out.String()
		if got := strings.Count(out, "\n"); int64(got) != 1+lines-dropped+1 {
			t.Errorf("%d lines were written", got)
		}
		rest := out[strings.LastIndex(strings.TrimSpace(out), "\n")+1:]
		if want := map[string]string{"text": fmt.Sprintf(" lines=%d\n", dropped),
			"json": fmt.Sprintf(",\"lines\":%d}\n", dropped)}[form]; !strings.HasSuffix(rest, want) {
			t.Errorf("the last line: %q, want it to end in %q", rest, want)
		}
	}
}

// TestLogWithoutReader checks that lines that cannot be written count as dropped, and that Close
// does not wait forever for a reader that is stuck.
func TestLogWithoutReader(t *testing.T) {
	reader := &blockedWriter{unblockSignal: make(chan struct{}), err: errors.New("broken pipe")}
	logs, err := NewLogs(reader, conf.Default())
	if err != nil {
		t.Fatal(err)
	}
	logs.Logger().Info("one")
	logs.queue.Close()
	close(reader.unblockSignal)
	<-logs.queue.done
	if logs.droppedLines() != 1 {
		t.Errorf("%d lines were dropped", logs.droppedLines())
	}
	logs.Logger().Info("after the end")
	if logs.droppedLines() != 2 {
		t.Errorf("%d lines were dropped", logs.droppedLines())
	}
}
