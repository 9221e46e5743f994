package proxy

import (
	"context"
	"errors"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/internal/resp"
	"redlock-proxy/proxy/login"
	"redlock-proxy/proxy/upstream"
)

// An upstream that a script keeps busy still carries out what ends that script, but refuses what
// gives a connection its database. Where such a connection is to be made first, what ends the
// script goes over one that begins with the URL's login alone.

// frees reports whether a command ends a script or function that keeps a server busy, or tells of
// it, or ends the server.
func frees(words [][]byte, count int) bool {
	if count != len(words) || count == 0 {
		return false
	}
	name, sub := syntax.Lower(words[0]), ""
	if count == 2 {
		sub = syntax.Lower(words[1])
	}
	switch name {
	case "script":
		return sub == "kill"
	case "function":
		return sub == "kill" || sub == "stats"
	}
	return name == "shutdown"
}

// freeUp has a busy upstream carry out such a command in spite of the reason why the client has no
// connection of its own. It reports false for all others.
func freeUp(ctx context.Context, up *upstream.Upstream, who *login.Client, frame []byte, reason error) (answer []byte, done bool) {
	var down *upstream.Error
	if !errors.As(reason, &down) || !down.IsBusy() || len(frame) == 0 || frame[0] != '*' { // who writes lines by hand writes one more
		return nil, false
	}
	words, count := resp.Excerpt(frame)
	if !frees(words, count) || who.DeniedReason(words) != "" {
		return nil, false
	}
	answer, err := up.AskBusy(ctx, frame)
	return answer, err == nil
}
