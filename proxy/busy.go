package proxy

import (
	"context"
	"errors"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/internal/resp"
	"redlock-proxy/proxy/login"
	"redlock-proxy/proxy/upstream"
)

// An upstream that is busy with a script runs commands that end the script, but refuses SELECT,
// which a new client connection needs. If the client has no connection yet, the proxy sends such a
// command over a connection that begins only with the URL's login.

// endsBusyScript reports whether a busy server still runs a command. Such a command ends the
// running script or function, returns its statistics, or stops the server.
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

// runOnBusyUpstream runs a command that ends a busy script at the upstream. reason is the error of
// the client's own connection. handled is false for other commands, and if the command did not run.
func runOnBusyUpstream(
	ctx context.Context, up *upstream.Upstream, user *login.Client, frame []byte, reason error,
) (answer []byte, handled bool) {
	var upErr *upstream.Error
	if !errors.As(reason, &upErr) || !upErr.IsBusy() {
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
