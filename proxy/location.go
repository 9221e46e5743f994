package proxy

import (
	"context"
	"errors"
	"time"

	"redlock-proxy/commands"
	"redlock-proxy/commands/command"
	"redlock-proxy/proxy/track"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/quorum"
	"redlock-proxy/quorum/place"
)

// Commands on lock keys go to where the locks are: package place has the rules, of which the first
// is kept here. While the locks are moved such commands wait.

// errElsewhere is for a command that was not carried out, because the locks are elsewhere by now.
var errElsewhere = errors.New("the locks are elsewhere")

// locationRouter tells where commands on lock keys are to go, and does what it takes to have the
// upstream carry one out.
type locationRouter struct {
	relay  *relay
	asker  *asker
	client *command.Client
	table  *commands.Table
	// places tell where the locks are; nil: they are on the masters. unmoved is the table while
	// they are at the upstream.
	places  Places
	unmoved *commands.Table
	came    time.Time // when the command came that is run again; zero: it is not
}

// placeFor is where a command belongs: the upstream or the masters. One that touches lock keys
// waits until that is known. It is dropped if its client sends no more meanwhile, as Redis drops a
// client that is blocked: one that has given up, and asks again over another connection, would find
// the lock taken by what it gave up, or have it removed by that.
func (c *locationRouter) placeFor(ctx context.Context, own *command.Command, words [][]byte) (place.Place, error) {
	at, known := c.places.Placed()
	switch {
	case at.Place == place.Masters && !c.places.Departing(): // as far as is known, and it is found out there
		return at.Place, nil
	case at.Place == place.Upstream && known:
		return at.Place, nil
	case c.came.IsZero() && !c.touches(own, words) && !c.relay.isStale():
		return at.Source(), nil
	}
	if at.Source() == place.Upstream {
		if err := c.asker.settle(ctx); err != nil {
			return at.Place, err
		}
		if c.relay.isMidway() { // it goes to its end, and that is waited for
			return place.Upstream, nil
		}
	}
	_, err := c.asker.watched(ctx, func(ctx context.Context) (err error) {
		at, err = c.places.Resting(ctx)
		return err
	})
	if err == nil && c.asker.session.left {
		err = errClientLeft
	}
	return at.Place, err
}

// touches reports whether a command is about lock keys, so that it is not carried out while they
// are moved.
func (c *locationRouter) touches(own *command.Command, words [][]byte) bool {
	switch {
	case c.client.Transaction.Open:
		return true
	case own == nil && track.Name(words[0]) == "exec" && c.relay.watchesLocks():
		return true
	case own == nil:
		verb := c.table.Route(commands.Situation{}, words).Verb
		return verb != commands.Forward && verb != commands.Connect
	case own.IsOurs():
		lock, _ := c.table.LockKeys().Split(words, own.Places(words))
		return lock >= 0 || own.AllLocks
	}
	return c.unmoved.Lookup(words[0]) == nil // it is about all keys
}

func failureOf(err error) string {
	if down, ok := errors.AsType[*upstream.Error](err); ok {
		return down.Reply()
	}
	return command.Failure(err)
}

// carry has the next bytes that are sent be of a command on lock keys, until carried is called. The
// connection is one over which such a command may go; errElsewhere: there is none any more.
func (c *locationRouter) carry(ctx context.Context, words [][]byte) error {
	if err := c.relay.open(ctx); err != nil {
		return err
	}
	if !c.relay.isVouched() {
		if err := c.vouch(ctx); err != nil {
			return err
		}
	}
	if c.relay.carry(c.places, words) {
		return nil
	}
	if err := c.asker.settle(ctx); err != nil { // to know whether it is in a transaction
		return err
	}
	if !c.relay.carryOn(words) {
		return errElsewhere
	}
	return nil
}

// vouch finds out whether commands on lock keys may go over the connection.
func (c *locationRouter) vouch(ctx context.Context) error {
	if err := c.asker.settle(ctx); err != nil {
		return err
	}
	if !c.relay.hasHeard() {
		if _, err := c.asker.askAloud(ctx, "PING"); err != nil { // a refusal is an answer, too
			return err
		}
	}
	dial := c.relay.dial
	var at quorum.Placed
	err := c.asker.attend(ctx, func(ctx context.Context) (err error) {
		at, err = c.places.Confirm(ctx)
		return err
	})
	switch {
	case err != nil:
		return err
	case at.Place != place.Upstream:
		return errElsewhere
	}
	c.relay.vouch(dial)
	return nil
}

// execUpstream has the upstream carry out a transaction that was begun while the locks were on the
// masters, and gives the reply to EXEC. After an error it says whether anything of it was sent.
func (c *locationRouter) execUpstream(ctx context.Context, queued [][]string) (answer []byte, sent bool, err error) {
	err = c.asker.attend(ctx, func(ctx context.Context) error {
		_, err := c.places.Resting(ctx)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	if err := c.carry(ctx, [][]byte{[]byte("exec")}); err != nil {
		return nil, false, err
	}
	defer c.relay.carried()
	all := append(append([][]string{{"MULTI"}}, queued...), []string{"EXEC"})
	err = c.asker.inquire(ctx, c.relay.know(), func(ctx context.Context) error {
		sent = true
		answers, err := c.asker.PutAll(ctx, all)
		if err == nil {
			answer = answers[len(answers)-1]
		}
		return err
	})
	return answer, sent, err
}

// leaveStale deals with a client that watches lock keys at the upstream which are on the masters
// now: for it they have changed. Doomed: the command is one of a transaction at the upstream of
// which nothing will be carried out, and is queued there whatever it is.
func (c *locationRouter) leaveStale(ctx context.Context, own *command.Command, follow string) (doomed bool, err error) {
	if !c.relay.isStale() {
		return false, nil
	}
	if err := c.asker.settle(ctx); err != nil {
		return false, err
	}
	switch state := c.relay.know(); {
	case state.Multi && state.Watching && follow == "exec":
		return false, c.failExec(ctx)
	case state.Multi && state.Watching:
		return own == nil && follow != "discard" && follow != "reset" && follow != "quit", nil
	case state.Watching:
		if _, err := c.asker.askAloud(ctx, "UNWATCH"); err != nil {
			return false, err
		}
		c.relay.teach(func(s *track.State) { s.Watching = false })
		c.client.Transaction.Watched = changed()
	}
	c.relay.unstale()
	return false, nil
}

// changed are watched keys of which something has changed.
func changed() command.Watched {
	return command.Watched{Keys: map[string]string{"": ""}, Changed: true}
}

// failExec has the EXEC that follows, now or later, fail as one whose watched keys have changed.
func (c *locationRouter) failExec(ctx context.Context) error {
	if _, err := c.asker.askInMulti(ctx, discard); err != nil {
		return err
	}
	c.relay.teach((*track.State).EndMulti)
	c.relay.teach(func(s *track.State) { s.Watching = false })
	c.relay.unstale()
	c.client.Transaction.Watched = changed()
	c.client.Transaction.Begin()
	return nil
}
