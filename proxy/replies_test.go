package proxy

import (
	"testing"

	"redlock-proxy/proxy/track"
	"redlock-proxy/proxy/upstream"
)

// TestFilterRemovesInternalReplies checks that only the replies to internal commands are removed
// from the stream, however it is split.
func TestFilterRemovesInternalReplies(t *testing.T) {
	const prefix, internalReply, suffix = "$5\r\n+OK\r\n\r\n", "*2\r\n$1\r\nx\r\n|1\r\n+a\r\n+b\r\n:1\r\n", ":7\r\n"
	const push = ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n"
	const stream = prefix + push + internalReply + push + suffix
	up, err := upstream.New("redis://h", 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	for at := range len(stream) + 1 {
		r := newRelay(&serverState{opts: Options{Upstream: up}}, &session{}, &clientWriter{}, nil, nil, nil)
		r.updateState(func(s *track.State) { s.Proto = 3 })
		r.expect(1, &track.ExpectedReply{Kind: track.InternalCommand, N: 1})
		r.expect(1, nil)
		passed := string(r.filter([]byte(stream[:at]))) + string(r.filter([]byte(stream[at:])))
		if want := prefix + push + push + suffix; passed != want || len(r.answers) != 1 ||
			string(r.answers[0]) != internalReply {
			t.Fatalf("cut at %d: passed %q, asked %q", at, passed, r.answers)
		}
		if !r.isSettled() {
			t.Errorf("cut at %d: a reply is outstanding", at)
		}
	}
}
