package script

import "redlock-proxy/internal/luascript"

// All returns the guard's scripts, to be loaded on a master.
func All() []luascript.Script {
	return []luascript.Script{
		Quarantine, Admit, Enrol, UpdateMarker, DropClaim, UpdateRecord, WriteRules, ReplaceRules, ReserveCatchUp, OpenDatabase, Fill,
		Names, Values, Databases, RaiseLongest, Sequences, PublishSeqs, PublishedSeqs, RenewCanaries, Announce,
		Promise, Seal, AddRecord, Rejoin, StorePauseReport, PauseReports, GetMarker,
	}
}
