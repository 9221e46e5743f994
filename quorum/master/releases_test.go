package master

import (
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"redlock-proxy/internal/redistest"
	"redlock-proxy/internal/resp"
	"redlock-proxy/quorum/cell"
)

// TestCombinedReleases checks which releases of a batch go into one script, and at which position.
func TestCombinedReleases(t *testing.T) {
	for batch, want := range map[string]string{
		"-a":                 "-a",
		"-a -b":              "[-a -b]",
		"+a -b":              "+a -b",
		"-a +b -c":           "[-a -c] +b",
		"+a -b +c -a -d":     "+a [-b -a -d] +c", // the take of a precedes all releases
		"-a +b -b -c":        "[-a -c] +b -b",    // the release of b stays behind its take
		"-a -a -b":           "[-a -b] -a",
		"-a -a":              "-a -a",
		"-a undo-b -c":       "[-a -c] undo-b",
		"-a undo-b -b":       "-a undo-b -b",
		"-a +b,c -c -b -d":   "[-a -d] +b,c -c -b",
		"whole-a -b whole-c": "whole-a -b whole-c",
	} {
		f := Batch{}
		f.load(batchOf(batch))
		f.releases.collect(f.ops)
		if got := layout(&f, strings.Fields(batch)); got != want {
			t.Errorf("%s is sent as %s, want %s", batch, got, want)
		}
	}
}

// batchOf parses a batch: +key is a take, -key a release, undo-key an undo, and whole-key a release
// with the full script.
func batchOf(text string) (ops []*op) {
	for _, word := range strings.Fields(text) {
		kind, name := word[:1], word[1:]
		if prefix, key, found := strings.Cut(word, "-"); found {
			kind, name = prefix+"-", key
		}
		names := strings.Split(name, ",")
		o := noReplyOp(0, cell.Remove{Name: name, Attempt: attempt(1), Mode: cell.Release}, false)
		switch kind {
		case "+":
			o = noReplyOp(0, cell.Take{Names: names, Attempt: attempt(1), Tokens: make([]string, len(names)),
				TTL: cell.NoExpiry}, false)
		case "undo-":
			o = noReplyOp(0, cell.Remove{Name: name, Attempt: attempt(1), Mode: cell.Undo}, false)
		case "whole-":
			o.fullScript = true
		}
		ops = append(ops, o)
	}
	return ops
}

// layout returns a text in which brackets enclose the operations that are sent together.
func layout(f *Batch, words []string) string {
	var parts []string
	for i := range f.ops {
		switch {
		case f.releases.first(i):
			var group []string
			for _, j := range f.releases.indexes {
				group = append(group, words[j])
			}
			parts = append(parts, fmt.Sprint(group))
		case !f.releases.has(i):
			parts = append(parts, words[i])
		}
	}
	return strings.Join(parts, " ")
}

// TestCombinedReleaseReplies checks that each release gets its own reply. If the server has lost
// the script, it does not execute the releases, and the next batch contains the script.
func TestCombinedReleaseReplies(t *testing.T) {
	server := redistest.New(t, redistest.Options{})
	conn, err := newRedisTransport("redis://"+server.Addr(), Access{Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	ownValue, foreignValue := cell.EncodePlain(attempt(1), "t"), cell.EncodePlain(attempt(2), "t")
	for _, want := range []string{"NOSCRIPT NOSCRIPT NOSCRIPT NOSCRIPT", "done found nothing done",
		"done found nothing done"} {
		for key, value := range map[string]string{"a": ownValue, "b": foreignValue, "d": ownValue} {
			if _, err := conn.Do(t.Context(), "SET", key, value); err != nil {
				t.Fatal(err)
			}
		}
		f := &Batch{}
		f.load(batchOf("-a -b -c -d"))
		_ = (&Master{transport: conn}).exchange(f)
		var got []string
		for _, r := range f.replies {
			got = append(got, outcome(r))
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// outcome returns the reply to a release as a word.
func outcome(r reply) string {
	switch {
	case r.Err != nil:
		return strings.Fields(r.Err.Error())[0]
	case r.Applied:
		return "done"
	case r.KeyStates[0].Form == cell.Absent:
		return "nothing"
	default:
		return "found"
	}
}

// TestReleasesOnCluster checks that the transport sends releases one by one to a server that does
// not run scripts on several keys.
func TestReleasesOnCluster(t *testing.T) {
	conn := &redisTransport{}
	if err := error(resp.Error("CROSSSLOT Keys in request don't hash to the same slot")); !conn.IsUnsupported(err) {
		t.Error("the releases are not sent in another form")
	} else if conn.noteScriptError(err); !conn.noMultiKeyScripts.Load() {
		t.Error("later releases are combined again")
	}
}

// attempt returns an attempt of the proxy with this number.
func attempt(proxy int64) cell.Attempt { return cell.NumberedSource(big.NewInt(proxy)).Attempt() }
