package proxy

import (
	"context"
	"errors"

	"redlock-proxy/commands"
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/internal/resp"
	"redlock-proxy/proxy/track"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/quorum"
	"redlock-proxy/quorum/place"
)

// Commands on lock keys go to where the locks are: package place has the rules, of which the first is kept here. While the locks are moved
// such commands wait.

// Places tell where the locks are: a *quorum.Cluster, whose methods say the errors.
type Places interface {
	Placed() (at quorum.Placed, known bool)
	Departing() bool
	Turned() <-chan struct{}
	Resting(ctx context.Context) (quorum.Placed, error)
	Confirm(ctx context.Context) (quorum.Placed, error)
	SayHeld(ctx context.Context, era int, held quorum.Held) error
}

// errElsewhere is for a command that was not carried out, because the locks are elsewhere by now.
var errElsewhere = errors.New("the locks are elsewhere")

// placeFor is where a command belongs: the upstream or the masters. One that touches lock keys waits until that is known.
func (f *forwarding) placeFor(ctx context.Context, own *command.Command, words [][]byte) (place.Place, error) {
	at, known := f.places.Placed()
	switch {
	case at.Place == place.Masters && !f.places.Departing(): // as far as is known, and it is found out there
		return at.Place, nil
	case at.Place == place.Upstream && known:
		return at.Place, nil
	case f.came.IsZero() && !f.touches(own, words) && !f.relay.isStale():
		return at.Source(), nil
	}
	if at.Source() == place.Upstream {
		if err := f.settle(ctx); err != nil {
			return at.Place, err
		}
		if f.relay.isMidway() { // it goes to its end, and that is waited for
			return place.Upstream, nil
		}
	}
	err := f.attend(ctx, func(ctx context.Context) (err error) {
		at, err = f.places.Resting(ctx)
		return err
	})
	return at.Place, err
}

// touches reports whether a command is about lock keys, so that it is not carried out while they are moved.
func (f *forwarding) touches(own *command.Command, words [][]byte) bool {
	switch {
	case f.client.Transaction.Open:
		return true
	case own == nil && track.Name(words[0]) == "exec" && f.relay.watchesLocks():
		return true
	case own == nil:
		verb := f.table.Route(commands.Situation{}, words).Verb
		return verb != commands.Forward && verb != commands.Connect
	case own.IsOurs():
		lock, _ := f.table.LockKeys().Split(words, own.Places(words))
		return lock >= 0 || own.AllLocks
	}
	return f.before.Lookup(words[0]) == nil // it is about all keys
}

// routeUpstream is routeBy while the locks are at the upstream.
func (f *forwarding) routeUpstream(ctx context.Context, own *command.Command, follow string, words [][]byte) error {
	tx := &f.client.Transaction
	if tx.Watching() { // of what was on the masters
		tx.Watched.Changed = true
	}
	if tx.Open || tx.Watching() && (follow == "multi" || syntax.Lower(words[0]) == "unwatch") {
		return f.routeBy(ctx, f.table, own, follow, words)
	}
	before := f.before.Lookup(words[0])
	if before != nil || !f.touches(own, words) {
		return f.routeBy(ctx, f.before, before, follow, words)
	}
	if err := f.carry(ctx, words); err != nil {
		return f.orRefuse(ctx, err)
	}
	defer f.relay.carried()
	at := f.situation()
	at.Upstream.Settled = follow == ""
	return f.forward(ctx, at, nil, follow, words)
}

// carryLong is routeUpstream of a command that is too long to be held; it reports false where the locks are not at the upstream.
func (f *forwarding) carryLong(ctx context.Context, follow string) (bool, error) {
	if f.places == nil || f.client.Transaction.Open {
		return false, nil
	}
	words, _ := resp.Excerpt(f.in.chunk()[:min(maxExcerpt, f.in.size())])
	at, known := f.places.Placed()
	if !known || at.Place != place.Upstream || len(words) == 0 {
		return false, nil
	}
	if err := f.carry(ctx, words); err != nil {
		if errors.Is(err, errElsewhere) {
			return false, nil
		}
		return true, f.refuseLong(ctx, func([][]byte) { f.client.Refuse(failureOf(err), f.out) })
	}
	f.carries, f.keys.lock = true, false
	f.passLong(follow)
	return true, nil
}

// orRefuse answers with an error, unless that ends the session, or has the command be tried elsewhere.
func (f *forwarding) orRefuse(ctx context.Context, err error) error {
	if errors.Is(err, errElsewhere) || errors.Is(err, errOver) || errors.Is(err, errClientLeft) || f.session.left || ctx.Err() != nil {
		return err
	}
	return f.refuseByUser(ctx, failureOf(err))
}

func failureOf(err error) string {
	var down *upstream.Error
	if errors.As(err, &down) {
		return down.Reply()
	}
	return command.Failure(err)
}

// carry has the next bytes that are sent be of a command on lock keys, until carried is called. The connection is one over which such a command may
// go; errElsewhere: there is none any more.
func (f *forwarding) carry(ctx context.Context, words [][]byte) error {
	if err := f.part(ctx); err != nil {
		return err
	}
	if err := f.relay.open(ctx); err != nil {
		return err
	}
	if !f.relay.isVouched() {
		if err := f.vouch(ctx); err != nil {
			return err
		}
	}
	if f.relay.carry(f.places, words) {
		return nil
	}
	if err := f.settle(ctx); err != nil { // to know whether it is in a transaction
		return err
	}
	if !f.relay.carryOn(words) {
		return errElsewhere
	}
	return nil
}

// vouch finds out whether commands on lock keys may go over the connection.
func (f *forwarding) vouch(ctx context.Context) error {
	if err := f.settle(ctx); err != nil {
		return err
	}
	if !f.relay.hasHeard() {
		if _, err := f.askAloud(ctx, "PING"); err != nil { // a refusal is an answer, too
			return err
		}
	}
	dial := f.relay.dial
	var at quorum.Placed
	err := f.attend(ctx, func(ctx context.Context) (err error) {
		at, err = f.places.Confirm(ctx)
		return err
	})
	switch {
	case err != nil:
		return err
	case at.Place != place.Upstream:
		return errElsewhere
	}
	f.relay.vouch(dial)
	return nil
}

// putToUpstream has the upstream carry out a command on lock keys for the proxy itself, on the client's connection.
func (f *forwarding) putToUpstream(ctx context.Context, words ...string) (answer []byte, err error) {
	if err := f.carry(ctx, [][]byte{[]byte(words[0])}); err != nil {
		if errors.Is(err, errElsewhere) {
			at, _ := f.places.Placed()
			err = &quorum.ElsewhereError{Now: at}
		}
		return nil, err
	}
	defer f.relay.carried()
	return f.askAloud(ctx, words...)
}

// execUpstream has the upstream carry out a transaction that was begun while the locks were on the masters, and gives the reply to EXEC. After an error it
// says whether anything of it was sent.
func (f *forwarding) execUpstream(ctx context.Context, queued [][]string) (answer []byte, sent bool, err error) {
	err = f.attend(ctx, func(ctx context.Context) error {
		_, err := f.places.Resting(ctx)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	if err := f.carry(ctx, [][]byte{[]byte("exec")}); err != nil {
		return nil, false, err
	}
	defer f.relay.carried()
	all := append(append([][]string{{"MULTI"}}, queued...), []string{"EXEC"})
	err = f.inquire(ctx, f.relay.know(), func(ctx context.Context) error {
		sent = true
		answers, err := f.putAll(ctx, all)
		if err == nil {
			answer = answers[len(answers)-1]
		}
		return err
	})
	return answer, sent, err
}

// leaveStale deals with a client that watches lock keys at the upstream which are on the masters now: for it they have changed. Doomed: the
// command is one of a transaction at the upstream of which nothing will be carried out, and is queued there whatever it is.
func (f *forwarding) leaveStale(ctx context.Context, own *command.Command, follow string) (doomed bool, err error) {
	if !f.relay.isStale() {
		return false, nil
	}
	if err := f.settle(ctx); err != nil {
		return false, err
	}
	switch state := f.relay.know(); {
	case state.Multi && state.Watching && follow == "exec":
		return false, f.failExec(ctx)
	case state.Multi && state.Watching:
		return own == nil && follow != "discard" && follow != "reset" && follow != "quit", nil
	case state.Watching:
		if _, err := f.askAloud(ctx, "UNWATCH"); err != nil {
			return false, err
		}
		f.relay.teach(func(s *track.State) { s.Watching = false })
		f.client.Transaction.Watched = changed()
	}
	f.relay.unstale()
	return false, nil
}

// changed are watched keys of which something has changed.
func changed() command.Watched {
	return command.Watched{Keys: map[string]string{"": ""}, Changed: true}
}

// failExec has the EXEC that follows, now or later, fail as one whose watched keys have changed.
func (f *forwarding) failExec(ctx context.Context) error {
	if _, err := f.askInMulti(ctx, discard); err != nil {
		return err
	}
	f.relay.teach((*track.State).EndMulti)
	f.relay.teach(func(s *track.State) { s.Watching = false })
	f.relay.unstale()
	f.client.Transaction.Watched = changed()
	f.client.Transaction.Begin()
	return nil
}

// onMasters is routeBy while the locks are on the masters. What waits there for others is not waited for when they leave.
func (f *forwarding) onMasters(ctx context.Context, own *command.Command, follow string, words [][]byte) error {
	waits := track.MayBlock(words[0]) || own != nil && own.MayWait(words)
	if waits || own != nil && !own.Keyed() { // PROXY MOVE among them
		return f.routeBy(ctx, f.table, own, follow, words)
	}
	if !f.relay.run(f.places) && f.touches(own, words) {
		return errElsewhere
	}
	defer f.relay.ran()
	return f.routeBy(ctx, f.table, own, follow, words)
}
