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

// stuck is a reader of the log that reads nothing until it is let go.
type stuck struct {
	letGo chan struct{}
	came  chan struct{} // one is sent as soon as there is a line; nil: none
	mu    sync.Mutex
	out   bytes.Buffer
	fails error
}

func (s *stuck) Write(line []byte) (int, error) {
	select {
	case s.came <- struct{}{}:
	case <-s.letGo:
	}
	<-s.letGo
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out.Write(line)
	return len(line), s.fails
}

// Who logs never waits for the log's reader; what it misses is counted, and said where it is
// missing.
func TestLogIsNotWaitedFor(t *testing.T) {
	for _, form := range []string{"text", "json"} {
		reader := &stuck{letGo: make(chan struct{}), came: make(chan struct{})}
		cfg := conf.Default()
		cfg.LogFormat = form
		logs, err := NewLogs(reader, cfg)
		if err != nil {
			t.Fatal(err)
		}
		log := logs.Logger()
		log.Info("first")
		<-reader.came // else lines would be dropped before and after the first ones are written
		const lines = 100
		for i := range lines {
			log.Info("long", "i", i, "x", strings.Repeat("x", maxLogQueue/20))
		}
		dropped := logs.dropped()
		if dropped < lines/2 || dropped >= lines {
			t.Errorf("%d lines were dropped", dropped)
		}
		close(reader.letGo)
		logs.queue.Close()
		<-logs.queue.done // where the machine is busy Close does not wait for all lines
		out := reader.out.String()
		if got := strings.Count(out, "\n"); int64(got) != 1+lines-dropped+1 {
			t.Errorf("%d lines were written", got)
		}
		rest := out[strings.LastIndex(strings.TrimSpace(out), "\n")+1:]
		if want := map[string]string{"text": fmt.Sprintf(" lines=%d\n", dropped), "json": fmt.Sprintf(",\"lines\":%d}\n", dropped)}[form]; !strings.HasSuffix(rest, want) {
			t.Errorf("the last line: %q, want it to end in %q", rest, want)
		}
	}
}

// A log that cannot be written is counted, too; and the end of the process does not wait for one
// that is stuck.
func TestLogWithoutReader(t *testing.T) {
	reader := &stuck{letGo: make(chan struct{}), fails: errors.New("broken pipe")}
	logs, err := NewLogs(reader, conf.Default())
	if err != nil {
		t.Fatal(err)
	}
	logs.Logger().Info("one")
	logs.queue.Close()
	close(reader.letGo)
	<-logs.queue.done
	if logs.dropped() != 1 {
		t.Errorf("%d lines were dropped", logs.dropped())
	}
	logs.Logger().Info("after the end")
	if logs.dropped() != 2 {
		t.Errorf("%d lines were dropped", logs.dropped())
	}
}
