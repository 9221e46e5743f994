package script

import "github.com/redis/go-redis/v9"

// Script is a Lua script with its SHA-1, as EVALSHA and EVAL need them.
type Script struct{ Source, SHA string }

// New computes the SHA-1.
func New(source string) Script { return Script{source, redis.NewScript(source).Hash()} }

// All are the guard's, to be loaded on a master.
func All() []Script {
	return []Script{
		Quarantine, Admit, Enrol, Reword, Disclaim, Restate, Settle, Impose, Claim, Open, Fill,
		Names, Values, Databases, RaiseLongest, Sequences, KeepAges, KeptAges, RenewCanaries, Announce,
		Promise, Seal, Await, Rejoin, Hold, Held, Marked,
	}
}
