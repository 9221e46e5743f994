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

// Which operations of a batch go as one script, and where.
func TestReleasesGoTogether(t *testing.T) {
	for batch, want := range map[string]string{
		"-a":                 "-a",
		"-a -b":              "[-a -b]",
		"+a -b":              "+a -b",
		"-a +b -c":           "[-a -c] +b",
		"+a -b +c -a -d":     "+a [-b -a -d] +c", // the lock of a came before all of them
		"-a +b -b -c":        "[-a -c] +b -b",    // b's own release stays where it is
		"-a -a -b":           "[-a -b] -a",
		"-a -a":              "-a -a",
		"-a undo-b -c":       "[-a -c] undo-b",
		"-a undo-b -b":       "-a undo-b -b",
		"-a +b,c -c -b -d":   "[-a -d] +b,c -c -b",
		"whole-a -b whole-c": "whole-a -b whole-c",
	} {
		f := Flight{}
		f.load(batchOf(batch))
		f.releases.gather(f.ops)
		if got := layout(&f, strings.Fields(batch)); got != want {
			t.Errorf("%s goes as %s, want %s", batch, got, want)
		}
	}
}

// batchOf reads +key for a take, -key for a release.
func batchOf(text string) (ops []*op) {
	for _, word := range strings.Fields(text) {
		kind, name := word[:1], word[1:]
		if prefix, key, found := strings.Cut(word, "-"); found {
			kind, name = prefix+"-", key
		}
		names := strings.Split(name, ",")
		o := tellOp(0, cell.Remove{Name: name, Attempt: attempt(1), How: cell.Release}, false)
		switch kind {
		case "+":
			o = tellOp(0, cell.Take{Names: names, Attempt: attempt(1), Tokens: make([]string, len(names)), TTL: cell.Endless}, false)
		case "undo-":
			o = tellOp(0, cell.Remove{Name: name, Attempt: attempt(1), How: cell.Undo}, false)
		case "whole-":
			o.whole = true
		}
		ops = append(ops, o)
	}
	return ops
}

// layout shows what goes together.
func layout(f *Flight, words []string) string {
	var all []string
	for i := range f.ops {
		switch {
		case f.releases.first(i):
			var group []string
			for _, j := range f.releases.of {
				group = append(group, words[j])
			}
			all = append(all, fmt.Sprint(group))
		case !f.releases.has(i):
			all = append(all, words[i])
		}
	}
	return strings.Join(all, " ")
}

// Each release is answered for itself. Where the server has lost the script they were not done, and
// the next ones bring it.
func TestReleasesAreAnsweredEach(t *testing.T) {
	server := redistest.New(t, redistest.Options{})
	conn, err := newRedisTransport("redis://"+server.Addr(), time.Minute, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	mine, other := cell.Envelope(attempt(1), "t"), cell.Envelope(attempt(2), "t")
	for _, want := range []string{"NOSCRIPT NOSCRIPT NOSCRIPT NOSCRIPT", "done found nothing done", "done found nothing done"} {
		for key, value := range map[string]string{"a": mine, "b": other, "d": mine} {
			if _, err := conn.Do(t.Context(), "SET", key, value); err != nil {
				t.Fatal(err)
			}
		}
		f := &Flight{}
		f.load(batchOf("-a -b -c -d"))
		_ = (&Master{transport: conn}).exchange(f)
		var got []string
		for _, r := range f.replies {
			got = append(got, said(r))
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// said is what a release was told.
func said(r reply) string {
	switch {
	case r.Err != nil:
		return strings.Fields(r.Err.Error())[0]
	case r.Did:
		return "done"
	case r.Found[0].Form == cell.Absent:
		return "nothing"
	default:
		return "found"
	}
}

// A server that takes no script on several keys gets the releases one by one.
func TestReleasesOfACluster(t *testing.T) {
	conn := &redisTransport{}
	if err := error(resp.Error("CROSSSLOT Keys in request don't hash to the same slot")); !conn.Misses(err) {
		t.Error("it is not tried in another form")
	} else if conn.heed(err); !conn.apart.Load() {
		t.Error("the next ones go together again")
	}
}

// attempt is one of a proxy with this number.
func attempt(proxy int64) cell.Attempt { return cell.NumberedSource(big.NewInt(proxy)).Attempt() }
