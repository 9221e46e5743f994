package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/internal/resp"
	"redlock-proxy/proxy/netconn"
)

// inputOf returns an input that reads the bytes written to client.
func inputOf(t *testing.T) (in *input, client net.Conn) {
	client, server := net.Pipe()
	t.Cleanup(func() { client.Close(); server.Close() })
	_ = server.SetDeadline(time.Now().Add(testTimeout))
	return newInput(server, &netconn.Activity{}, nil, func() int { return 0 }), client
}

// nextWords reads up to the end of a frame, and returns its words.
func nextWords(t *testing.T, in *input) (words []string) {
	t.Helper()
	for {
		ev, err := in.nextEvent()
		if err == nil && ev == resp.FrameMore {
			err = in.fill()
		}
		if err != nil {
			t.Fatal(err)
		}
		if ev == resp.FrameEnd {
			args, err := in.words()
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range args {
				words = append(words, string(a))
			}
			in.skip()
			return words
		}
	}
}

// TestInputReadsFrames checks that frames of all sizes are returned unchanged, wherever the end of
// the buffer splits them.
func TestInputReadsFrames(t *testing.T) {
	in, client := inputOf(t)
	sizes := []int{0, 1, 100, netconn.BufferSize - 40, netconn.BufferSize, 3 * netconn.BufferSize, 10, 100_000, 7, 7, 7,
		netconn.BufferSize / 2, netconn.BufferSize / 2, netconn.BufferSize / 2, 1}
	go func() {
		var all bytes.Buffer
		for i, size := range sizes {
			all.WriteString(array("ECHO", fmt.Sprint(i), strings.Repeat("x", size)))
		}
		for chunk := 1; all.Len() > 0; chunk = chunk*5%9973 + 1 {
			_, _ = client.Write(all.Next(chunk))
		}
	}()
	for i, size := range sizes {
		if got, want := nextWords(t, in), []string{"ECHO", fmt.Sprint(i), strings.Repeat("x", size)}; !slices.Equal(got,
			want) {
			t.Fatalf("frame %d: %.100q", i, got)
		}
	}
}

// TestLookaheadKeepsTheWords checks that reading ahead does not change a waiting command's words.
func TestLookaheadKeepsTheWords(t *testing.T) {
	in, client := inputOf(t)
	pipeline := strings.Repeat(array("PING"), 3000)
	go func() {
		_, _ = io.WriteString(client, array("LOCK", "key", "token")+array("PING")[:5])
		_, _ = io.WriteString(client, array("PING")[5:]+pipeline)
	}()
	for {
		ev, err := in.nextEvent()
		if err == nil && ev == resp.FrameMore {
			err = in.fill()
		}
		if err != nil {
			t.Fatal(err)
		}
		if ev == resp.FrameEnd {
			break
		}
	}
	words, err := in.words()
	if err != nil {
		t.Fatal(err)
	}
	for in.readEnd-in.scanEnd < len(pipeline)+len(array("PING")) {
		if err := in.readAhead(); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 { // the next users of returned buffers overwrite them
		clear(netconn.GetBuffer())
	}
	if got := string(bytes.Join(words, []byte(" "))); got != "LOCK key token" {
		t.Fatalf("the words became %q", got)
	}
	in.skip()
	for i := range 3001 {
		if got := nextWords(t, in); !slices.Equal(got, []string{"PING"}) {
			t.Fatalf("command %d behind: %q", i, got)
		}
	}
}

// TestLookaheadIsBudgeted checks that reading ahead reserves its memory, and stops if the budget
// refuses that.
func TestLookaheadIsBudgeted(t *testing.T) {
	in, client := inputOf(t)
	in.budget = &budget{sharedBytes: func() int64 { return 0 }}
	in.budget.limit.Store(maxLookahead)
	go writeBytes(client, megabyte)
	var err error
	for err == nil {
		err = in.readAhead()
	}
	if !errors.Is(err, errBufferFull) || len(in.buf) > maxLookahead || in.budget.used() != int64(len(in.buf)) {
		t.Errorf("%v with a buffer of %d bytes, %d reserved", err, len(in.buf), in.budget.used())
	}
	if in.close(); in.budget.used() != 0 {
		t.Errorf("%d bytes are left", in.budget.used())
	}
}

func TestLookaheadIsBounded(t *testing.T) {
	in, client := inputOf(t)
	go writeBytes(client, megabyte)
	for range 1000 {
		if err := in.readAhead(); errors.Is(err, errBufferFull) {
			if in.readEnd > 2*maxLookahead {
				t.Errorf("%d bytes ahead", in.readEnd)
			}
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
	t.Fatalf("no end at %d bytes", in.readEnd)
}
