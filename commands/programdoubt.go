package commands

import (
	"context"
	"errors"

	"redlock-proxy/commands/register"
)

// stranger begins values that no client has ever written.
const stranger = "\x00stranger"

// doubtAnswer is the reply of a command that may have been carried out, for a moment.
const doubtAnswer = "NOQUORUM masters did not answer: the command may have been carried out, and was taken back"

// doubt ends a program whose edits some masters made and others may have made: if that
// was a majority, others have seen it before it was taken back, and a second try would
// do it twice. Where whoever finds the keys held is told so, that is the answer, as it
// is where votes are split.
func (f *performance) doubt(ctx context.Context, a attempt) (*attempt, error) {
	inDoubt := &attempt{reply: register.Fail(doubtAnswer)}
	var told [2]attempt
	for i, value := range []string{stranger, stranger + "'s friend"} {
		s := register.NewSpace(f.opts.Now())
		for _, e := range a.edits {
			s.Put(e.Key, register.Entry{Present: true, Value: value, Left: e.Now.Left})
		}
		var err error
		var unread *register.UnreadError
		told[i], err = f.Table.run(ctx, f.program, s)
		if err != nil && !errors.As(err, &unread) {
			return nil, err
		}
		if err != nil || len(told[i].edits) > 0 || told[i].reply.Kind == register.Error {
			return inDoubt, nil
		}
	}
	if !sameReply(told[0], told[1]) {
		return inDoubt, nil
	}
	return &told[0], nil
}

// asks reports whether the reply tells anything of what the keys held.
func (a attempt) asks() bool {
	for _, e := range a.edits {
		if e.Asked {
			return true
		}
	}
	return false
}
