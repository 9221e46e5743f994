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

// inquiryTimeout bounds each answer of the upstream to a question of the proxy's
// own, while a client waits for it.
const inquiryTimeout = 2 * time.Second

// asker asks the upstream something for the proxy on a client's own connection, and so as the
// client. It belongs to the session's goroutine, and is what package rights asks for a client.
type asker struct {
	session *session
	relay   *relay
}

// inquire asks the upstream something for the proxy itself, on the client's connection,
// also where that was told to be silent.
func (a *asker) inquire(ctx context.Context, state track.State, talk func(context.Context) error) error {
	quieten, err := a.beginToAsk(ctx, state)
	if err != nil {
		return err
	}
	defer quieten()
	return talk(ctx)
}

// beginToAsk has the connection answer questions of the proxy's own, until quieten is called.
func (a *asker) beginToAsk(ctx context.Context, state track.State) (quieten func(), err error) {
	if err := state.CanAsk(); err != nil {
		return nil, err
	}
	if err := a.relay.open(ctx); err != nil {
		return nil, err
	}
	return a.speakUp(ctx, a.relay.up.Timeout())
}

// speakUp has a silent connection speak. quieten has it be silent again.
func (a *asker) speakUp(ctx context.Context, limit time.Duration) (quieten func(), err error) {
	again := ""
	switch a.relay.silence {
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

// put sends a command for the proxy itself and gives its whole reply, which is never
// empty.
func (a *asker) put(ctx context.Context, words ...string) ([]byte, error) {
	answers, err := a.PutAll(ctx, [][]string{words})
	if err != nil {
		return nil, err
	}
	return answers[0], nil
}

// PutAll is put for several commands, which are sent together; it is of login.Upstream.
func (a *asker) PutAll(ctx context.Context, commands [][]string) ([][]byte, error) {
	return a.exchange(ctx, min(inquiryTimeout, a.relay.up.Timeout()), requestOf(commands), len(commands))
}

// exchange sends so many commands for the proxy itself and gives their replies, in bounded time
// unless the limit is 0.
func (a *asker) exchange(ctx context.Context, limit time.Duration, commands []byte, n int) (answers [][]byte, err error) {
	if err := a.relay.request(commands, n); err != nil {
		return nil, err
	}
	err = a.attend(ctx, func(ctx context.Context) (err error) {
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

// ask sends a command for the proxy itself and gives its whole reply. Nothing else
// may be awaited.
func (a *asker) ask(ctx context.Context, command []byte) (answer []byte, err error) {
	return a.askWithin(ctx, a.relay.up.Timeout(), command)
}

// askWithin is ask in bounded time, unless the limit is 0.
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

// Commands of the proxy itself.
const (
	ping      = "*1\r\n$4\r\nPING\r\n"
	replyOn   = "*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$2\r\nON\r\n"
	replyOff  = "*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$3\r\nOFF\r\n"
	replySkip = "*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$4\r\nSKIP\r\n"
)

// askAloud is ask on a connection that may be told to be silent.
func (a *asker) askAloud(ctx context.Context, words ...string) (answer []byte, err error) {
	err = a.inquire(ctx, a.relay.know(), func(ctx context.Context) error {
		answer, err = a.put(ctx, words...)
		return err
	})
	return answer, err
}

// askProto asks which protocol is spoken.
func (a *asker) askProto(ctx context.Context) int {
	proto := 2
	answer, err := a.askAloud(ctx, "HELLO")
	if err == nil && answer[0] == '%' {
		proto = 3
	}
	a.relay.teach(func(s *track.State) { s.Proto, s.ProtoUnknown = proto, err != nil })
	return proto
}

// askMode asks as the client whether the upstream is alone, once it has led the client elsewhere:
// anybody can have a script say that. Before a login it may not have said.
func (a *asker) askMode(ctx context.Context) error {
	if !a.relay.doubtful.Swap(false) {
		return nil
	}
	if err := a.settle(ctx); err != nil {
		return err
	}
	if answer, err := a.askAloud(ctx, "HELLO"); err == nil { // else the next one that leads elsewhere has it asked again
		a.relay.up.HearMode(answer)
	}
	return nil
}

var dbField = regexp.MustCompile(` db=(\d+) `)

// askDB asks which database is selected.
func (a *asker) askDB(ctx context.Context) (int, error) {
	info, err := a.askAloud(ctx, "CLIENT", "INFO")
	if err != nil {
		return 0, err
	}
	found := dbField.FindSubmatch(info)
	if found == nil {
		return 0, errors.New("CLIENT INFO does not show it")
	}
	db, err := strconv.Atoi(string(found[1]))
	if err == nil {
		a.relay.teach(func(s *track.State) { s.DB, s.DBUnknown = db, false })
	}
	return db, err
}

// settle waits for the upstream to have answered all that was sent.
func (a *asker) settle(ctx context.Context) error {
	if !a.relay.isQuiet() {
		if err := a.attend(ctx, a.relay.settle); err != nil {
			return err
		}
	}
	a.relay.blocking.Store(false)
	return a.relay.isOver()
}

// catchUp waits, but not for ever, for the upstream to have carried out what it was not to answer,
// too: it is asked for an answer of which the client learns nothing.
func (a *asker) catchUp(ctx context.Context) error {
	state := a.relay.know()
	if !a.relay.unnoticed || a.relay.wire == nil || state.CanAsk() != nil {
		return nil
	}
	a.relay.unnoticed = false
	if a.relay.silence == track.Speaking {
		_, err := a.askWithin(ctx, a.relay.shared.times.stall, []byte(ping))
		return err
	}
	quieten, err := a.speakUp(ctx, a.relay.shared.times.stall)
	quieten()
	return err
}

// attend waits for the upstream, and no longer when the client leaves. One that
// only sends no more may still be reading, so it is given what comes soon; but not
// while it is blocked, for then Redis takes the end of its stream for its end.
func (a *asker) attend(ctx context.Context, wait func(context.Context) error) error {
	watched, err := a.watched(ctx, wait)
	if !a.session.left || context.Cause(watched) != errClientLeft || err != nil && a.relay.blocking.Load() || !errors.Is(a.session.in.lookahead(), io.EOF) {
		return err
	}
	a.session.left = false
	if err == nil {
		return nil
	}
	soon, cancel := context.WithTimeout(ctx, a.relay.shared.times.farewell)
	defer cancel()
	if err := wait(soon); err != nil {
		return errors.Join(errClientLeft, err)
	}
	return nil
}

// watched waits until the client leaves, or sends no more.
func (a *asker) watched(ctx context.Context, wait func(context.Context) error) (context.Context, error) {
	watched, stop := a.session.watch(ctx)
	defer stop() // also at a panic: the session's memory is given back then
	return watched, wait(watched)
}

// Commands of the proxy itself, for transactions.
const (
	discard = "*1\r\n$7\r\nDISCARD\r\n"
	// spoiler is refused for its number of arguments, and with it the transaction.
	spoiler = "*1\r\n$3\r\nGET\r\n"
)

// spoil waits until the upstream has answered all. A transaction there is refused with a command
// that is not sent.
func (a *asker) spoil(ctx context.Context) error {
	if err := a.settle(ctx); err != nil {
		return err
	}
	switch state := a.relay.know(); {
	case state.Quitting:
		return io.EOF
	case state.Stream:
		return errOver
	case state.Multi:
		return a.spoilMulti(ctx)
	}
	return nil
}

// spoilMulti has the upstream refuse the EXEC of a transaction.
func (a *asker) spoilMulti(ctx context.Context) error {
	_, err := a.askInMulti(ctx, spoiler)
	return err
}

// askInMulti is ask within a transaction: with the upstream's connection it is lost.
func (a *asker) askInMulti(ctx context.Context, command string) ([]byte, error) {
	answer, err := a.ask(ctx, []byte(command))
	if _, ok := errors.AsType[*upstream.Error](err); ok {
		return nil, errOver
	}
	return answer, err
}

// request sends n commands for the proxy itself. Nothing else may be awaited.
func (r *relay) request(commands []byte, n int) error {
	if !r.expect(0, &track.Slot{Kind: track.Capture, N: n}) {
		return r.up.Failure(upstream.ErrGone)
	}
	r.send(commands)
	return nil
}

// response waits for the n whole replies to a request, in bounded time unless the limit is 0. An
// upstream that does not answer, or without an end, loses its connection: what comes later
// cannot be told from answers to others. The client may go on, if nothing of it was kept there.
func (r *relay) response(ctx context.Context, limit time.Duration, n int) ([][]byte, error) {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	soon := ctx
	if limit > 0 {
		var cancel context.CancelFunc
		soon, cancel = context.WithTimeoutCause(ctx, limit, errNoAnswer)
		defer cancel()
	}
	err := r.line.wait(soon, func() bool { return len(r.answers) >= n || r.gone || r.spoilt != nil })
	switch {
	case r.spoilt != nil:
		r.giveUp(ctx)
		return nil, r.up.Failure(r.spoilt)
	case err == errNoAnswer:
		r.giveUp(ctx)
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

// giveUp ends the connection, and waits until that is done. It is called with mu held, which it
// lets go: the courier may need it before the connection can close.
func (r *relay) giveUp(ctx context.Context) {
	r.givenUp = true
	r.line.mu.Unlock()
	_ = r.wire.Close()
	r.line.mu.Lock()
	_ = r.line.wait(ctx, func() bool { return r.gone })
}
