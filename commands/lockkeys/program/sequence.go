package program

import (
	"context"
	"maps"
	"slices"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/commands/rights"
)

// Sequence joins programs into one program, which commits their changes together. The reply is the
// array of the parts' replies. If a watched key has changed, no part runs.
func Sequence(db int, permissions *rights.Permissions, watchedVersions map[string]string, parts []Program) Program {
	p := Program{DB: db, Rights: permissions, Keys: slices.Sorted(maps.Keys(watchedVersions)), WatchedVersions: watchedVersions}
	guess := Guess{}
	for _, part := range parts {
		p.Keys = append(p.Keys, part.Keys...)
		p.UsuallyWrites = p.UsuallyWrites || part.UsuallyWrites
		if len(part.Guesses) > 0 {
			guess.add(part.Guesses[0])
		}
	}
	p.Keys = syntax.Distinct(p.Keys)
	if len(watchedVersions) == 0 {
		p.Guesses = []Guess{guess}
	}
	p.Run = func(ctx context.Context, s *keyspace.Snapshot) (keyspace.Reply, [][]string, error) {
		replies := make([]keyspace.Reply, len(parts))
		var effects [][]string
		for i, part := range parts {
			reply, partEffects, err := part.Run(ctx, s)
			if err != nil {
				return keyspace.Reply{}, nil, err
			}
			replies[i], effects = reply, append(effects, partEffects...)
		}
		return keyspace.ArrayReply(replies...), effects, nil
	}
	return p
}

// FixedReply returns a program that uses no keys, with this reply and these side effects.
func FixedReply(db int, reply keyspace.Reply, effects ...[]string) Program {
	return Program{DB: db, Run: func(context.Context, *keyspace.Snapshot) (keyspace.Reply, [][]string, error) {
		return reply, effects, nil
	}}
}
