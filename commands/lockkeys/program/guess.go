package program

import (
	"time"

	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/commands/lockkeys/keyspace/contents"
)

// Guess is an assumption about the values of keys.
type Guess map[string]keyspace.Entry

// GuessAbsent guesses that none of the keys exists.
func GuessAbsent(keys []string) Guess {
	g := Guess{}
	for _, key := range keys {
		g[key] = keyspace.Entry{}
	}
	return g
}

// GuessText guesses that each of the keys holds the text.
func GuessText(keys []string, text string) Guess { return GuessValue(keys, contents.EncodeText(text)) }

// GuessValue guesses that each of the keys holds the value, encoded by contents.Encode.
func GuessValue(keys []string, value string) Guess {
	g := Guess{}
	for _, key := range keys {
		g[key] = keyspace.Entry{Present: true, Value: value, RemainingTTL: keyspace.UnknownExpiry}
	}
	return g
}

// Snapshot returns the guess as the view of a program.
func (g Guess) Snapshot(now time.Time) *keyspace.Snapshot {
	s := keyspace.NewSnapshot(now)
	for key, e := range g {
		s.Put(key, e)
	}
	return s
}

// add adds another guess's entries for keys that this guess does not have.
func (g Guess) add(other Guess) {
	for key, e := range other {
		if _, ok := g[key]; !ok {
			g[key] = e
		}
	}
}
