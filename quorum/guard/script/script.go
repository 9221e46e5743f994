package script

import "redlock-proxy/internal/luascript"

// All returns the guard's scripts, to be loaded on a master.
func All() []luascript.Script {
	return []luascript.Script{
		Quarantine, Admit, Enrol, UpdateMarker, DropClaim, UpdateRecord, WriteRules, ReplaceRules, ReserveCatchUp, OpenDatabase, Fill,
		ReadNames, ReadValues, ReadDatabases, RaiseLongestTTL, ReadSequences, PublishSeqs, ReadPublishedSeqs,
		RenewCanaries, Announce, EndAnnouncement,
		Promise, Seal, AddRecord, Rejoin, StorePauseReport, ReadPauseReports, GetMarker,
	}
}
