package blocking

import (
	"context"
	"errors"
	"strings"

	"redlock-proxy/commands/command"
	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/commands/lockkeys/program"
	"redlock-proxy/quorum"
)

// pop holds the state of one blocking command of a client.
type pop struct {
	Options
	request
	call command.Call
	// keysOnMasters holds the keys on the masters for the request's keys, in the same order.
	keysOnMasters []quorum.Key
	// isFirstRead is true until a try has read all keys once. Until then, a key of another type is
	// an error.
	isFirstRead bool
	// found is true if the last try found an element. The masters may have removed this element
	// even if the try failed.
	found bool
	// outcome and err hold the result of the last try.
	outcome program.Outcome
	err     error
}

// readsPerTry limits the number of times that one try reads all keys.
const readsPerTry = 3

// try takes an element from one of the keys for which the client is the head of the queue. It
// continues if the client disconnects, and the element is then lost with the reply.
func (p *pop) try(isHead []bool) quorum.PopResult {
	p.found = false
	if len(p.keys) == 1 && isHead[0] {
		return p.noteRead(p.take(0, ""))
	}
	for range readsPerTry {
		if result := p.takeFirst(isHead); result != quorum.PopOvertaken {
			return p.noteRead(result)
		}
	}
	return quorum.PopOvertaken
}

// noteRead updates isFirstRead after a try, and returns the result of the try.
func (p *pop) noteRead(result quorum.PopResult) quorum.PopResult {
	p.isFirstRead = p.isFirstRead && (result == quorum.PopOvertaken || result == quorum.PopUndetermined)
	return result
}

// takeFirst takes from the first key that has an element.
func (p *pop) takeFirst(isHead []bool) quorum.PopResult {
	snapshots, err := p.Engine.Register.Read(p.call.Ctx, p.keysOnMasters)
	if err != nil {
		return p.fail(err)
	}
	i, errReply := p.firstNonEmpty(p.keys, snapshots)
	switch {
	case errReply != nil:
		return p.setReply(*errReply)
	case i < 0, !isHead[i]:
		return quorum.PopNothingStored
	case i == 0:
		return p.take(0, "")
	}
	// The keys before key i must be empty while key i has this version.
	earlierSnapshots, err := p.Engine.Register.Read(p.call.Ctx, p.keysOnMasters[:i])
	if err != nil {
		return p.fail(err)
	}
	if earlier, errReply := p.firstNonEmpty(p.keys[:i], earlierSnapshots); earlier >= 0 || errReply != nil {
		return quorum.PopOvertaken
	}
	return p.take(i, snapshots[i].Version)
}

// firstNonEmpty returns the index of the first key that has an element, or a negative number.
func (p *pop) firstNonEmpty(keys []string, snapshots []quorum.Snapshot) (i int, errReply *keyspace.Reply) {
	now := p.Now()
	for i, l := range snapshots {
		switch has, errReply := p.hasElement(keys[i], l, now); {
		case has:
			return i, nil
		case errReply != nil && !p.isIgnored(*errReply):
			return i, errReply
		}
	}
	return -1, nil
}

// isIgnored reports whether a reply is the error for a key that got another type while the client
// waits. The client then continues to wait, as in Redis.
func (p *pop) isIgnored(reply keyspace.Reply) bool {
	return !p.isFirstRead && reply.Kind == keyspace.Error && strings.HasPrefix(reply.Str, "WRONGTYPE ")
}

// take takes an element from key i if the key has this version. An empty version allows any
// version.
func (p *pop) take(i int, version string) quorum.PopResult {
	prog := p.Program(p.call.Client, p.wordsForKey(p.keys[i]))
	prog.Holder = p.call.Client.Identity()
	run := prog.Run
	prog.Run = func(ctx context.Context, s *keyspace.Snapshot) (reply keyspace.Reply, effects [][]string, err error) {
		reply, effects, err = run(ctx, s)
		p.found = p.found || err == nil && reply.Kind != keyspace.Error && !isNil(reply)
		return reply, effects, err
	}
	if len(p.keys) > 1 {
		prog.Guesses, prog.UsuallyWrites = nil, true // the key was just read
	}
	if version != "" {
		prog.WatchedVersions = map[string]string{p.keys[i]: version}
	}
	outcome, err := p.Engine.Run(p.call.Ctx, prog)
	var contendedErr *program.ContendedError
	switch {
	case errors.As(err, &contendedErr):
		return quorum.PopOvertaken
	case err != nil:
		return p.fail(err)
	case isNil(outcome.Reply) && len(p.keys) > 1:
		return quorum.PopOvertaken
	case isNil(outcome.Reply):
		return quorum.PopNothingStored
	case p.isIgnored(outcome.Reply):
		return p.handleWrongType(outcome)
	}
	p.outcome = outcome
	return quorum.PopEnded
}

// handleWrongType handles a key of another type than the command needs. The client continues to
// wait, unless the target of a move has the wrong type and the source has an element.
func (p *pop) handleWrongType(outcome program.Outcome) quorum.PopResult {
	if !p.hasTarget {
		return quorum.PopNothingStored
	}
	keysOnMasters := p.Engine.KeysOnMasters(p.call.Client.DB, []string{p.keys[0], p.target})
	snapshots, err := p.Engine.Register.Read(p.call.Ctx, keysOnMasters)
	if err != nil {
		return p.fail(err)
	}
	if has, _ := p.hasElement(p.keys[0], snapshots[0], p.Now()); !has {
		return quorum.PopNothingStored
	}
	guess := program.Guess{p.keys[0]: program.EntryOf(snapshots[0]), p.target: program.EntryOf(snapshots[1])}
	if reply, err := guess.Snapshot(p.Now()).Do(p.words); err != nil || reply.Kind != keyspace.Error {
		return quorum.PopOvertaken
	}
	p.outcome = outcome
	return quorum.PopEnded
}

// fail ends the wait with an error. If too few masters answered and the try found no element, the
// client continues to wait.
func (p *pop) fail(err error) quorum.PopResult {
	if !p.found && errors.As(err, new(*quorum.NoQuorumError)) {
		return quorum.PopUndetermined
	}
	p.err = err
	return quorum.PopEnded
}

func (p *pop) setReply(reply keyspace.Reply) quorum.PopResult {
	p.outcome = program.Outcome{Reply: reply}
	return quorum.PopEnded
}
