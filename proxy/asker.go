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

// inquiryTimeout limits the wait for the replies to the proxy's own commands, while a client waits.
const inquiryTimeout = 2 * time.Second

// asker sends the proxy's own commands to the upstream on a client's connection, and so as the
// client. It belongs to the session's goroutine, and implements rights.Upstream.
type asker struct {
	session *session
	relay   *relay
}

// inquire runs talk, which sends commands of the proxy on the client's connection. It works even if
// the client has turned replies off.
func (a *asker) inquire(ctx context.Context, state track.State, talk func(context.Context) error) error {
	restore, err := a.beginAsking(ctx, state)
	if err != nil {
		return err
	}
	defer restore()
	return talk(ctx)
}

// beginAsking makes the upstream reply to the proxy's own commands until restore is called.
func (a *asker) beginAsking(ctx context.Context, state track.State) (restore func(), err error) {
	if err := state.CanAsk(); err != nil {
		return nil, err
	}
	if err := a.relay.open(ctx); err != nil {
		return nil, err
	}
	return a.enableReplies(ctx, a.relay.up.Timeout())
}

// enableReplies turns replies on, if the client has turned them off. restore turns them off again.
func (a *asker) enableReplies(ctx context.Context, limit time.Duration) (restore func(), err error) {
	again := ""
	switch a.relay.replyMode {
	case track.Speaking:
		return func() {}, nil
	case track.SilentOnce:
		again = replySkip
	case track.SilentFromNow:
		again = replyOff
	}
	_, err = a.askWithin(ctx, limit, []byte(replyOn))
	return func() { a.relay.send([]byte(again)) }, err
}

// askOne sends a command of the proxy, and returns its reply, which is never empty.
func (a *asker) askOne(ctx context.Context, words ...string) ([]byte, error) {
	answers, err := a.SendAll(ctx, [][]string{words})
	if err != nil {
		return nil, err
	}
	return answers[0], nil
}

// SendAll is askOne for several commands that are sent together. It implements login.Upstream.
func (a *asker) SendAll(ctx context.Context, commands [][]string) ([][]byte, error) {
	return a.exchange(ctx, min(inquiryTimeout, a.relay.up.Timeout()), requestOf(commands), len(commands))
}

// exchange sends n commands of the proxy and returns their replies. A limit of 0 means no limit.
func (a *asker) exchange(
	ctx context.Context, limit time.Duration, commands []byte, n int,
) (answers [][]byte, err error) {
	if err := a.relay.request(commands, n); err != nil {
		return nil, err
	}
	err = a.waitFor(ctx, func(ctx context.Context) (err error) {
		answers, err = a.relay.response(ctx, limit, n)
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

// ask sends a command of the proxy, and returns its whole reply. No other reply may be outstanding.
func (a *asker) ask(ctx context.Context, command []byte) (answer []byte, err error) {
	return a.askWithin(ctx, a.relay.up.Timeout(), command)
}

// askWithin is ask with a time limit; 0 means no limit.
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

// The proxy's own commands.
const (
	ping      = "*1\r\n$4\r\nPING\r\n"
	replyOn   = "*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$2\r\nON\r\n"
	replyOff  = "*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$3\r\nOFF\r\n"
	replySkip = "*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$4\r\nSKIP\r\n"
)

// askWithReplies is ask for a connection on which the client may have turned replies off.
func (a *asker) askWithReplies(ctx context.Context, words ...string) (answer []byte, err error) {
	err = a.inquire(ctx, a.relay.state(), func(ctx context.Context) error {
		answer, err = a.askOne(ctx, words...)
		return err
	})
	return answer, err
}

// askProto asks which protocol the connection uses. It returns 2 if the upstream does not answer.
func (a *asker) askProto(ctx context.Context) int {
	proto := 2
	answer, err := a.askWithReplies(ctx, "HELLO")
	if err == nil && answer[0] == '%' {
		proto = 3
	}
	a.relay.updateState(func(s *track.State) { s.Proto, s.ProtoUnknown = proto, err != nil })
	return proto
}

// askMode asks, as the client, whether the upstream is standalone, if it has sent a redirect. A
// redirect alone proves nothing, because a script can return one. Before the login the upstream may
// have refused to report its mode.
func (a *asker) askMode(ctx context.Context) error {
	if !a.relay.modeUnverified.Swap(false) {
		return nil
	}
	if err := a.waitUpstream(ctx); err != nil {
		return err
	}
	if answer, err := a.askWithReplies(ctx, "HELLO"); err == nil { // else the next redirect causes a new attempt
		a.relay.up.RecordMode(answer)
	}
	return nil
}

var dbField = regexp.MustCompile(` db=(\d+) `)

// askDB asks which database the client has selected.
func (a *asker) askDB(ctx context.Context) (int, error) {
	info, err := a.askWithReplies(ctx, "CLIENT", "INFO")
	if err != nil {
		return 0, err
	}
	found := dbField.FindSubmatch(info)
	if found == nil {
		return 0, errors.New("CLIENT INFO has no db field")
	}
	db, err := strconv.Atoi(string(found[1]))
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
	a.relay.blocking.Store(false)
	return a.relay.lostErr()
}

// awaitUnanswered waits, for a limited time, until the upstream has also run commands that get no
// reply. It sends a command of the proxy's own and waits for its reply.
func (a *asker) awaitUnanswered(ctx context.Context) error {
	state := a.relay.state()
	if !a.relay.lastUnanswered || a.relay.wire == nil || state.CanAsk() != nil {
		return nil
	}
	a.relay.lastUnanswered = false
	if a.relay.replyMode == track.Speaking {
		_, err := a.askWithin(ctx, a.relay.shared.times.stall, []byte(ping))
		return err
	}
	restore, err := a.enableReplies(ctx, a.relay.shared.times.stall)
	restore()
	return err
}

// waitFor runs wait, but not after the client has left. A client that only sends no more may still
// read, so its command gets a little more time. It gets none if it is blocked, because Redis drops
// a blocked client whose stream ends.
func (a *asker) waitFor(ctx context.Context, wait func(context.Context) error) error {
	watched, err := a.waitWatched(ctx, wait)
	if !a.session.left || context.Cause(watched) != errClientLeft ||
		err != nil && a.relay.blocking.Load() || !errors.Is(a.session.in.lookahead(), io.EOF) {
		return err
	}
	a.session.left = false
	if err == nil {
		return nil
	}
	soon, cancel := context.WithTimeout(ctx, a.relay.shared.times.linger)
	defer cancel()
	if err := wait(soon); err != nil {
		return errors.Join(errClientLeft, err)
	}
	return nil
}

// waitWatched runs wait, and cancels it if the client leaves or sends no more.
func (a *asker) waitWatched(ctx context.Context, wait func(context.Context) error) (context.Context, error) {
	watched, stop := a.session.watch(ctx)
	defer stop() // also on a panic: the session's memory is released then
	return watched, wait(watched)
}

// The proxy's own commands for transactions.
const (
	discard = "*1\r\n$7\r\nDISCARD\r\n"
	// invalidCommand has too few arguments: the upstream refuses it and aborts the transaction.
	invalidCommand = "*1\r\n$3\r\nGET\r\n"
)

// abortTx waits until the upstream has answered all commands. Then it makes the client's
// transaction at the upstream fail, because one of its commands is not forwarded.
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

// askInMulti is ask within a transaction, which is lost if the upstream's connection is lost.
func (a *asker) askInMulti(ctx context.Context, command string) ([]byte, error) {
	answer, err := a.ask(ctx, []byte(command))
	if _, ok := errors.AsType[*upstream.Error](err); ok {
		return nil, errStateLost
	}
	return answer, err
}

// request sends n commands of the proxy. No other reply may be outstanding.
func (r *relay) request(commands []byte, n int) error {
	if !r.expect(0, &track.Expected{Kind: track.OwnCommand, N: n}) {
		return r.up.Failure(upstream.ErrGone)
	}
	r.send(commands)
	return nil
}

// response waits at most limit for the n whole replies to a request; 0 means no limit. If the
// upstream does not answer, or a reply is too long, it closes the connection: later replies could
// not be told apart. The client may continue if the connection had no state.
func (r *relay) response(ctx context.Context, limit time.Duration, n int) ([][]byte, error) {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	soon := ctx
	if limit > 0 {
		var cancel context.CancelFunc
		soon, cancel = context.WithTimeoutCause(ctx, limit, errNoAnswer)
		defer cancel()
	}
	err := r.line.wait(soon, func() bool { return len(r.answers) >= n || r.gone || r.answerErr != nil })
	switch {
	case r.answerErr != nil:
		r.closeUnanswered(ctx)
		return nil, r.up.Failure(r.answerErr)
	case err == errNoAnswer:
		r.closeUnanswered(ctx)
		return nil, r.up.Failure(err)
	case err != nil:
		return nil, err
	}
	answers := r.answers
	r.answers = nil
	if len(answers) < n {
		return nil, r.up.Failure(upstream.ErrGone)
	}
	return answers, nil
}

// closeUnanswered closes the connection, and waits until end has run. It is called with mu held,
// and unlocks it meanwhile: the reply copier may need it before the connection can close.
func (r *relay) closeUnanswered(ctx context.Context) {
	r.closedUnanswered = true
	r.line.mu.Unlock()
	_ = r.wire.Close()
	r.line.mu.Lock()
	_ = r.line.wait(ctx, func() bool { return r.gone })
}
