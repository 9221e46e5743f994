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

// pop is a client that waits.
type pop struct {
	Options
	request
	call command.Call
	// places are where its keys stand.
	places []quorum.Key
	// first is set until all keys were looked at once: until then it is an error that one holds
	// something else.
	first bool
	// found is set where the last try found something to take, which it may have taken also where
	// it failed.
	found bool
	// done and err are what the last try came to.
	done program.Outcome
	err  error
}

// lookAgain is how often all keys are looked at in one try.
const lookAgain = 3

// try takes what there is under one of the keys, if it is the client's own. It goes on where the
// client leaves meanwhile: what is taken is lost with the reply.
func (p *pop) try(own []bool) quorum.Attempt {
	p.found = false
	if len(p.keys) == 1 && own[0] {
		return p.ends(p.take(0, ""))
	}
	for range lookAgain {
		if came := p.takeFirst(own); came != quorum.Overtaken {
			return p.ends(came)
		}
	}
	return quorum.Overtaken
}

// ends notes that the keys were looked at.
func (p *pop) ends(came quorum.Attempt) quorum.Attempt {
	p.first = p.first && (came == quorum.Overtaken || came == quorum.Unlooked)
	return came
}

// takeFirst takes from the first key that has something.
func (p *pop) takeFirst(own []bool) quorum.Attempt {
	looks, err := p.Engine.Register.Read(p.call.Ctx, p.places)
	if err != nil {
		return p.fails(err)
	}
	i, failed := p.firstThatHas(p.keys, looks)
	switch {
	case failed != nil:
		return p.replies(*failed)
	case i < 0, !own[i]:
		return quorum.InVain
	case i == 0:
		return p.take(0, "")
	}
	// Those before it must be empty while it holds this.
	before, err := p.Engine.Register.Read(p.call.Ctx, p.places[:i])
	if err != nil {
		return p.fails(err)
	}
	if other, failed := p.firstThatHas(p.keys[:i], before); other >= 0 || failed != nil {
		return quorum.Overtaken
	}
	return p.take(i, looks[i].Version)
}

// firstThatHas is the first of some keys that holds what is waited for; below zero: none does.
func (p *pop) firstThatHas(keys []string, looks []quorum.Look) (i int, failed *keyspace.Reply) {
	now := p.Now()
	for i, l := range looks {
		switch has, failed := p.holding(keys[i], l, now); {
		case has:
			return i, nil
		case failed != nil && !p.passesOver(*failed):
			return i, failed
		}
	}
	return -1, nil
}

// passesOver is true of the error for a key that came to hold something else while the client
// waits: as in Redis it goes on waiting.
func (p *pop) passesOver(reply keyspace.Reply) bool {
	return !p.first && reply.Kind == keyspace.Error && strings.HasPrefix(reply.Str, "WRONGTYPE ")
}

// take takes from a key, while that holds this version of its value; empty: whatever it holds.
func (p *pop) take(i int, version string) quorum.Attempt {
	what := p.Program(p.call.Client, p.of(p.keys[i]))
	what.Holder = p.call.Client.Identity()
	run := what.Run
	what.Run = func(ctx context.Context, s *keyspace.Space) (reply keyspace.Reply, effects [][]string, err error) {
		reply, effects, err = run(ctx, s)
		p.found = p.found || err == nil && reply.Kind != keyspace.Error && !isNothing(reply)
		return reply, effects, err
	}
	if len(p.keys) > 1 {
		what.Guesses, what.Replaces = nil, true // it was looked at
	}
	if version != "" {
		what.Watched = map[string]string{p.keys[i]: version}
	}
	done, err := p.Engine.Run(p.call.Ctx, what)
	var contended *program.ContendedError
	switch {
	case errors.As(err, &contended):
		return quorum.Overtaken
	case err != nil:
		return p.fails(err)
	case isNothing(done.Reply) && len(p.keys) > 1:
		return quorum.Overtaken
	case isNothing(done.Reply):
		return quorum.InVain
	case p.passesOver(done.Reply):
		return p.passed(done)
	}
	p.done = done
	return quorum.Made
}

// passed is what becomes of a client that found something else than what it waits for: it waits on,
// unless that is where it has to put what is there to be taken.
func (p *pop) passed(done program.Outcome) quorum.Attempt {
	if p.target == "" {
		return quorum.InVain
	}
	looks, err := p.Engine.Register.Read(p.call.Ctx, p.Engine.Places(p.call.Client.DB, []string{p.keys[0], p.target}))
	if err != nil {
		return p.fails(err)
	}
	if has, _ := p.holding(p.keys[0], looks[0], p.Now()); !has {
		return quorum.InVain
	}
	both := program.Guess{p.keys[0]: program.EntryOf(looks[0]), p.target: program.EntryOf(looks[1])}
	if reply, err := both.Space(p.Now()).Do(p.words); err != nil || reply.Kind != keyspace.Error {
		return quorum.Overtaken
	}
	p.done = done
	return quorum.Made
}

// fails is for an error. Where nothing can have been taken, the client waits until that is known.
func (p *pop) fails(err error) quorum.Attempt {
	if !p.found && errors.As(err, new(*quorum.NoQuorumError)) {
		return quorum.Unlooked
	}
	p.err = err
	return quorum.Made
}

func (p *pop) replies(reply keyspace.Reply) quorum.Attempt {
	p.done = program.Outcome{Reply: reply}
	return quorum.Made
}
