package proxy

import (
	"context"
	"errors"
	"io"
	"regexp"
	"strconv"
	"time"

	"redlock-proxy/internal/resp"
	"redlock-proxy/proxy/track"
	"redlock-proxy/proxy/upstream"
)

// internalCommandTimeout limits the wait for the replies to internal commands, while a client
// waits.
const internalCommandTimeout = 2 * time.Second

// asker sends internal commands to the upstream on a client's connection, with the client's
// permissions. It belongs to the session's goroutine, and implements rights.Upstream and
// login.Upstream.
type asker struct {
	session *session
	relay   *relay
}

// runWithReplies calls run, which sends internal commands on the client's connection. If the client
// has turned replies off, runWithReplies turns them on until run returns.
func (a *asker) runWithReplies(ctx context.Context, state track.State, run func(context.Context) error) error {
	restore, err := a.openWithReplies(ctx, state)
	if err != nil {
		return err
	}
	defer restore()
	return run(ctx)
}

// openWithReplies connects, and makes the upstream reply until the caller calls restore.
func (a *asker) openWithReplies(ctx context.Context, state track.State) (restore func(), err error) {
	if err := state.CheckCanAsk(); err != nil {
		return nil, err
	}
	if err := a.relay.open(ctx); err != nil {
		return nil, err
	}
	return a.enableReplies(ctx, a.relay.upstream.Timeout())
}

// enableReplies turns replies on, if the client has turned them off. restore sets the client's
// reply mode again.
func (a *asker) enableReplies(ctx context.Context, limit time.Duration) (restore func(), err error) {
	restoreCmd := ""
	switch a.relay.replyMode {
	case track.ReplyOn:
		return func() {}, nil
	case track.ReplySkip:
		restoreCmd = replySkip
	case track.ReplyOff:
		restoreCmd = replyOff
	}
	_, err = a.askWithin(ctx, limit, []byte(replyOn))
	return func() { a.relay.send([]byte(restoreCmd)) }, err
}

// askOne sends an internal command, and returns its reply, which is never empty.
func (a *asker) askOne(ctx context.Context, words ...string) ([]byte, error) {
	answers, err := a.SendAll(ctx, [][]string{words})
	if err != nil {
		return nil, err
	}
	return answers[0], nil
}

// SendAll sends several internal commands together, and returns their replies. It implements
// login.Upstream.
func (a *asker) SendAll(ctx context.Context, commands [][]string) ([][]byte, error) {
	return a.exchange(ctx, min(internalCommandTimeout, a.relay.upstream.Timeout()), requestOf(commands), len(commands))
}

// exchange sends n internal commands and returns their replies. A limit of 0 means no limit.
func (a *asker) exchange(
	ctx context.Context, limit time.Duration, commands []byte, n int,
) (answers [][]byte, err error) {
	if err := a.relay.sendRequest(commands, n); err != nil {
		return nil, err
	}
	err = a.waitFor(ctx, func(ctx context.Context) (err error) {
		answers, err = a.relay.awaitResponse(ctx, limit, n)
		return err
	})
	return answers, err
}

func requestOf(commands [][]string) []byte {
	var request []byte
	for _, words := range commands {
		request = resp.AppendWords(request, words...)
	}
	return request
}

// ask sends an internal command, and returns its whole reply. No other reply may be pending.
func (a *asker) ask(ctx context.Context, command []byte) (answer []byte, err error) {
	return a.askWithin(ctx, a.relay.upstream.Timeout(), command)
}

// askWithin sends an internal command like ask, with a time limit; 0 means no limit.
func (a *asker) askWithin(ctx context.Context, limit time.Duration, command []byte) (answer []byte, err error) {
	if err := a.relay.open(ctx); err != nil {
		return nil, err
	}
	answers, err := a.exchange(ctx, limit, command, 1)
	if err != nil {
		return nil, err
	}
	return answers[0], nil
}

// The internal commands with fixed words.
const (
	ping      = "*1\r\n$4\r\nPING\r\n"
	replyOn   = "*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$2\r\nON\r\n"
	replyOff  = "*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$3\r\nOFF\r\n"
	replySkip = "*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$4\r\nSKIP\r\n"
)

// askWithReplies sends an internal command, and returns its reply, even if the client has turned
// replies off.
func (a *asker) askWithReplies(ctx context.Context, words ...string) (answer []byte, err error) {
	err = a.runWithReplies(ctx, a.relay.state(), func(ctx context.Context) error {
		answer, err = a.askOne(ctx, words...)
		return err
	})
	return answer, err
}

// askProto asks the upstream for the protocol of the connection. It returns 2 if the upstream does
// not report the protocol.
func (a *asker) askProto(ctx context.Context) int {
	proto := 2
	answer, err := a.askWithReplies(ctx, "HELLO")
	if err == nil && answer[0] == '%' {
		proto = 3
	}
	a.relay.updateState(func(s *track.State) { s.Proto, s.ProtoUnknown = proto, err != nil })
	return proto
}

// askMode asks on the client's connection whether the upstream is standalone, if the upstream has
// sent a redirect. A redirect alone proves nothing, because a script can return one.
func (a *asker) askMode(ctx context.Context) error {
	if !a.relay.modeUnverified.Swap(false) {
		return nil
	}
	if err := a.waitUpstream(ctx); err != nil {
		return err
	}
	// If the HELLO fails, the next redirect makes the proxy ask again.
	if answer, err := a.askWithReplies(ctx, "HELLO"); err == nil {
		a.relay.upstream.RecordMode(answer)
	}
	return nil
}

var dbField = regexp.MustCompile(` db=(\d+) `)

// askDB asks the upstream for the database that the client has selected.
func (a *asker) askDB(ctx context.Context) (int, error) {
	info, err := a.askWithReplies(ctx, "CLIENT", "INFO")
	if err != nil {
		return 0, err
	}
	match := dbField.FindSubmatch(info)
	if match == nil {
		return 0, errors.New("CLIENT INFO has no db field")
	}
	db, err := strconv.Atoi(string(match[1]))
	if err == nil {
		a.relay.updateState(func(s *track.State) { s.DB, s.DBUnknown = db, false })
	}
	return db, err
}

// waitUpstream waits until the upstream has answered all commands.
func (a *asker) waitUpstream(ctx context.Context) error {
	if !a.relay.isSettled() {
		if err := a.waitFor(ctx, a.relay.waitSettled); err != nil {
			return err
		}
	}
	a.relay.mayBlock.Store(false)
	return a.relay.lostErr()
}

// awaitReplylessCommands waits, for a limited time, until the upstream has also run commands that
// get no reply. It sends a PING, or a CLIENT REPLY ON, and waits for its reply.
func (a *asker) awaitReplylessCommands(ctx context.Context) error {
	state := a.relay.state()
	if !a.relay.lastReplyless || a.relay.conn == nil || state.CheckCanAsk() != nil {
		return nil
	}
	a.relay.lastReplyless = false
	if a.relay.replyMode == track.ReplyOn {
		_, err := a.askWithin(ctx, a.relay.serverState.times.stall, []byte(ping))
		return err
	}
	restore, err := a.enableReplies(ctx, a.relay.serverState.times.stall)
	restore()
	return err
}

// waitFor calls wait, and cancels it when the client leaves. A half-closed client may still read,
// so its command gets lingerTime, unless the command is blocked: Redis also drops a blocked client
// whose stream ends.
func (a *asker) waitFor(ctx context.Context, wait func(context.Context) error) error {
	watchCtx, err := a.waitWatched(ctx, wait)
	if !a.session.clientDisconnected || context.Cause(watchCtx) != errClientDisconnected ||
		err != nil && a.relay.mayBlock.Load() || !errors.Is(a.session.in.readAhead(), io.EOF) {
		return err
	}
	a.session.clientDisconnected = false
	if err == nil {
		return nil
	}
	timeoutCtx, cancel := context.WithTimeout(ctx, a.relay.serverState.times.linger)
	defer cancel()
	if err := wait(timeoutCtx); err != nil {
		return errors.Join(errClientDisconnected, err)
	}
	return nil
}

// waitWatched calls wait, and cancels it if the client disconnects or half-closes its
// connection.
func (a *asker) waitWatched(ctx context.Context, wait func(context.Context) error) (context.Context, error) {
	watchCtx, stop := a.session.watch(ctx)
	defer stop() // also on a panic: the watch must not read into memory that is released then
	return watchCtx, wait(watchCtx)
}

// The internal commands for transactions.
const (
	discard = "*1\r\n$7\r\nDISCARD\r\n"
	// invalidCommand has too few arguments: the upstream refuses it and aborts the transaction.
	invalidCommand = "*1\r\n$3\r\nGET\r\n"
)

// abortTx waits until the upstream has answered all commands. Then it makes the client's
// transaction at the upstream fail, because the proxy does not forward one of its commands.
func (a *asker) abortTx(ctx context.Context) error {
	if err := a.waitUpstream(ctx); err != nil {
		return err
	}
	switch state := a.relay.state(); {
	case state.Quitting:
		return io.EOF
	case state.Stream:
		return errStateLost
	case state.Multi:
		return a.abortUpstreamTx(ctx)
	}
	return nil
}

// abortUpstreamTx makes the upstream refuse a transaction's EXEC.
func (a *asker) abortUpstreamTx(ctx context.Context) error {
	_, err := a.askInMulti(ctx, invalidCommand)
	return err
}

// askInMulti sends an internal command like ask, within a transaction. It returns errStateLost if
// the upstream's connection is lost, because the transaction is lost with it.
func (a *asker) askInMulti(ctx context.Context, command string) ([]byte, error) {
	answer, err := a.ask(ctx, []byte(command))
	if _, ok := errors.AsType[*upstream.Error](err); ok {
		return nil, errStateLost
	}
	return answer, err
}

// sendRequest sends n internal commands. No other reply may be pending.
func (r *relay) sendRequest(commands []byte, n int) error {
	if !r.expect(0, &track.ExpectedReply{Kind: track.InternalCommand, N: n}) {
		return r.upstream.Failure(upstream.ErrDisconnected)
	}
	r.send(commands)
	return nil
}

// awaitResponse waits at most limit for the n whole replies to a request; 0 means no limit. If the
// upstream does not answer, or a reply is too long, awaitResponse closes the connection, because
// later replies could not be matched to commands. The client may continue if the connection had no
// state.
func (r *relay) awaitResponse(ctx context.Context, limit time.Duration, n int) ([][]byte, error) {
	r.writer.mu.Lock()
	defer r.writer.mu.Unlock()
	timeoutCtx := ctx
	if limit > 0 {
		var cancel context.CancelFunc
		timeoutCtx, cancel = context.WithTimeoutCause(ctx, limit, errNoAnswer)
		defer cancel()
	}
	err := r.writer.wait(timeoutCtx, func() bool { return len(r.answers) >= n || r.disconnected || r.answerErr != nil })
	switch {
	case r.answerErr != nil:
		r.closeOnNoAnswer(ctx)
		return nil, r.upstream.Failure(r.answerErr)
	case err == errNoAnswer:
		r.closeOnNoAnswer(ctx)
		return nil, r.upstream.Failure(err)
	case err != nil:
		return nil, err
	}
	answers := r.answers
	r.answers = nil
	if len(answers) < n {
		return nil, r.upstream.Failure(upstream.ErrDisconnected)
	}
	return answers, nil
}

// closeOnNoAnswer closes the connection, and waits until end has run, or ctx ends. The caller holds
// writer.mu. closeOnNoAnswer unlocks writer.mu while it closes and waits, because the reply copier
// may need the lock. It disconnects a client that does not read for the stall time, because the copier
// may wait for it.
func (r *relay) closeOnNoAnswer(ctx context.Context) {
	unread := time.AfterFunc(r.serverState.times.stall, r.client.disconnect)
	defer unread.Stop()
	r.internalReplyFailed = true
	r.writer.mu.Unlock()
	_ = r.conn.Close()
	r.writer.mu.Lock()
	_ = r.writer.wait(ctx, func() bool { return r.disconnected })
}
