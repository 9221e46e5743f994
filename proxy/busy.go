package proxy

import (
	"context"
	"errors"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/internal/resp"
	"redlock-proxy/proxy/login"
	"redlock-proxy/proxy/upstream"
)

// An upstream that is busy with a script still runs commands that end the script, but refuses
// SELECT, which a new connection needs. If there is no connection yet, such a command goes over a
// connection that begins only with the URL's login.

// endsBusyScript reports whether a command ends a script or function that keeps a server busy, or
// reports on it, or stops the server.
func endsBusyScript(words [][]byte, count int) bool {
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

// runOnBusy runs a command that ends a busy script at the upstream. reason is the error with which
// the client's own connection failed. It reports false for all other commands.
func runOnBusy(
	ctx context.Context, up *upstream.Upstream, user *login.Client, frame []byte, reason error,
) (answer []byte, done bool) {
	var down *upstream.Error
	if !errors.As(reason, &down) || !down.IsBusy() {
		return nil, false
	}
	if len(frame) == 0 || frame[0] != '*' { // a user who types inline commands can repeat them
		return nil, false
	}
	words, count := resp.Excerpt(frame)
	if !endsBusyScript(words, count) || user.DeniedReason(words) != "" {
		return nil, false
	}
	answer, err := up.AskBusy(ctx, frame)
	return answer, err == nil
}
