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
	"redlock-proxy/quorum/location"
)

// Commands on lock keys are routed to the upstream or the masters, and wait while the locks move.
// Package location has the rules of a move; this package implements the first of them.

// errLocksMoved reports that a command did not run, because the locks have moved meanwhile.
var errLocksMoved = errors.New("the locks have moved")

// locationRouter decides whether commands on lock keys go to the upstream or the masters, and
// prepares the connection to the upstream for them.
type locationRouter struct {
	relay  *relay
	asker  *asker
	client *command.Client
	table  *commands.Table
	// lockLocation reports where the locks are; nil if they are always on the masters.
	// upstreamTable is the table to use while the locks are at the upstream.
	lockLocation  LockLocation
	upstreamTable *commands.Table
	arrivedAt     time.Time // first arrival of a command that is retried; zero in its first run
}

// locationFor returns where a command belongs: to the upstream or the masters. A command that
// touches lock keys waits until the location is known. The proxy drops a waiting command if its
// client half-closes, as Redis drops a blocked client that leaves. Otherwise, if the client retries
// over another connection, the old command could take or release the lock later.
func (c *locationRouter) locationFor(ctx context.Context, ownCmd *command.Command, words [][]byte) (location.Place, error) {
	at, known := c.lockLocation.CurrentLocation()
	switch {
	// The masters check the location.
	case at.Place == location.Masters && !c.lockLocation.IsLeavingMasters():
		return at.Place, nil
	case at.Place == location.Upstream && known:
		return at.Place, nil
	case c.arrivedAt.IsZero() && !c.touchesLockKeys(ownCmd, words) && !c.relay.isWatchMoved():
		return at.Source(), nil
	}
	if at.Source() == location.Upstream {
		if err := c.asker.waitUpstream(ctx); err != nil {
			return at.Place, err
		}
		// The transaction continues to its end, and the move waits for that.
		if c.relay.isInLockTx() {
			return location.Upstream, nil
		}
	}
	_, err := c.asker.waitWatched(ctx, func(ctx context.Context) (err error) {
		at, err = c.lockLocation.AwaitLocation(ctx)
		return err
	})
	if err == nil && c.asker.session.clientDisconnected {
		err = errClientDisconnected
	}
	return at.Place, err
}

// touchesLockKeys reports whether a command affects lock keys. Such a command must not run while
// the locks move.
func (c *locationRouter) touchesLockKeys(ownCmd *command.Command, words [][]byte) bool {
	switch {
	case c.client.Transaction.Open:
		return true
	case ownCmd == nil && track.StateCommandName(words[0]) == "exec" && c.relay.watchesLockKeys():
		return true
	case ownCmd == nil:
		verb := c.table.Route(commands.Situation{}, words).Action
		return verb != commands.Forward && verb != commands.Connect
	case ownCmd.IsOwn():
		lock, _ := c.table.LockKeys().Split(words, ownCmd.Places(words))
		return lock >= 0 || ownCmd.AffectsAllLocks
	}
	return c.upstreamTable.Lookup(words[0]) == nil // a command on all keys
}

func errorReply(err error) string {
	if upErr, ok := errors.AsType[*upstream.Error](err); ok {
		return upErr.Reply()
	}
	return command.Failure(err)
}

// prepareUpstream confirms that the connection may carry commands on lock keys. It marks the next
// bytes sent as part of such a command, until markLockCommandSent is called. The error is
// errLocksMoved if no connection may carry such a command now.
func (c *locationRouter) prepareUpstream(ctx context.Context, words [][]byte) error {
	if err := c.relay.open(ctx); err != nil {
		return err
	}
	if !c.relay.isConfirmed() {
		if err := c.confirm(ctx); err != nil {
			return err
		}
	}
	if c.relay.beginLockCommand(c.lockLocation, words) {
		return nil
	}
	// The replies show whether the client is in a transaction.
	if err := c.asker.waitUpstream(ctx); err != nil {
		return err
	}
	if !c.relay.continueLockTx(words) {
		return errLocksMoved
	}
	return nil
}

// confirm checks that commands on lock keys may go over the connection, and records that.
func (c *locationRouter) confirm(ctx context.Context) error {
	if err := c.asker.waitUpstream(ctx); err != nil {
		return err
	}
	if !c.relay.hasAnswered() {
		if _, err := c.asker.askWithReplies(ctx, "PING"); err != nil { // a refusal is a reply, too
			return err
		}
	}
	connID := c.relay.connID
	var at quorum.Location
	err := c.asker.waitFor(ctx, func(ctx context.Context) (err error) {
		at, err = c.lockLocation.Confirm(ctx)
		return err
	})
	switch {
	case err != nil:
		return err
	case at.Place != location.Upstream:
		return errLocksMoved
	}
	c.relay.setConfirmed(connID)
	return nil
}

// execAtUpstream runs, at the upstream, a transaction that began while the locks were on the
// masters. It returns the reply to EXEC. After an error, sent reports whether the transaction was
// sent.
func (c *locationRouter) execAtUpstream(ctx context.Context, queuedCommands [][]string) (answer []byte, sent bool, err error) {
	err = c.asker.waitFor(ctx, func(ctx context.Context) error {
		_, err := c.lockLocation.AwaitLocation(ctx)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	if err := c.prepareUpstream(ctx, [][]byte{[]byte("exec")}); err != nil {
		return nil, false, err
	}
	defer c.relay.markLockCommandSent()
	batch := append(append([][]string{{"MULTI"}}, queuedCommands...), []string{"EXEC"})
	err = c.asker.runWithReplies(ctx, c.relay.state(), func(ctx context.Context) error {
		sent = true
		answers, err := c.asker.SendAll(ctx, batch)
		if err == nil {
			answer = answers[len(answers)-1]
		}
		return err
	})
	return answer, sent, err
}

// dropMovedWatch handles a client whose watched lock keys have moved from the upstream to the
// masters, and possibly back: the watch counts as broken. queueOnly is set if the command belongs
// to an upstream transaction that can no longer succeed: the upstream should just queue it.
func (c *locationRouter) dropMovedWatch(
	ctx context.Context, ownCmd *command.Command, stateCmd string,
) (queueOnly bool, err error) {
	if !c.relay.isWatchMoved() {
		return false, nil
	}
	if err := c.asker.waitUpstream(ctx); err != nil {
		return false, err
	}
	switch state := c.relay.state(); {
	case state.Multi && state.Watching && stateCmd == "exec":
		return false, c.failExec(ctx)
	case state.Multi && state.Watching:
		return ownCmd == nil && stateCmd != "discard" && stateCmd != "reset" && stateCmd != "quit", nil
	case state.Watching:
		if _, err := c.asker.askWithReplies(ctx, "UNWATCH"); err != nil {
			return false, err
		}
		c.relay.updateState(func(s *track.State) { s.Watching = false })
		c.client.Transaction.Watched = changedWatch()
	}
	c.relay.clearWatch()
	return false, nil
}

// changedWatch returns a watch with a changed key.
func changedWatch() command.WatchedKeys {
	return command.WatchedKeys{Keys: map[string]string{"": ""}, Changed: true}
}

// failExec makes the client's next EXEC fail, as if a watched key had changed.
func (c *locationRouter) failExec(ctx context.Context) error {
	if _, err := c.asker.askInMulti(ctx, discard); err != nil {
		return err
	}
	c.relay.updateState((*track.State).EndMulti)
	c.relay.updateState(func(s *track.State) { s.Watching = false })
	c.relay.clearWatch()
	c.client.Transaction.Watched = changedWatch()
	c.client.Transaction.Begin()
	return nil
}
