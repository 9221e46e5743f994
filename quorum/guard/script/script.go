package script

import "redlock-proxy/internal/luascript"

// All returns the guard's scripts, which are to be loaded on a master.
func All() []luascript.Script {
	return []luascript.Script{
		Quarantine, Admit, Enrol, Reword, Disclaim, Restate, Settle, Impose, Claim, Open, Fill,
		Names, Values, Databases, RaiseLongest, Sequences, KeepAges, KeptAges, RenewCanaries, Announce,
		Promise, Seal, Await, Rejoin, Hold, Held, Marked,
	}
}
