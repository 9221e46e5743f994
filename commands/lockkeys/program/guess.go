package program

import (
	"time"

	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/commands/lockkeys/keyspace/contents"
)

// Guess is what keys might hold.
type Guess map[string]keyspace.Entry

// Absent is that none of the keys is there.
func Absent(keys []string) Guess {
	g := Guess{}
	for _, key := range keys {
		g[key] = keyspace.Entry{}
	}
	return g
}

// Text is that each of the keys holds the text.
func Text(keys []string, text string) Guess { return Held(keys, contents.EncodeText(text)) }

// Held is that each of the keys holds the value, as contents.Encode made it.
func Held(keys []string, value string) Guess {
	g := Guess{}
	for _, key := range keys {
		g[key] = keyspace.Entry{Present: true, Value: value, Left: keyspace.Unknown}
	}
	return g
}

// Space is the guess as a program sees it.
func (g Guess) Space(now time.Time) *keyspace.Space {
	s := keyspace.NewSpace(now)
	for key, e := range g {
		s.Put(key, e)
	}
	return s
}

// add takes over what another guess says of other keys.
func (g Guess) add(other Guess) {
	for key, e := range other {
		if _, known := g[key]; !known {
			g[key] = e
		}
	}
}
