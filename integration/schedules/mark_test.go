//go:build integration

package schedules

import (
	"strings"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestRemovalOfStaleMark sets a mark that reserves a key on one master. The mark has a long TTL, as
// if the clock of the master had been set back. The proxy removes the mark, and takes the lock on
// this master, too.
func TestRemovalOfStaleMark(t *testing.T) {
	masters := kit.StartMasters(t)
	client := kit.Connect(t, kit.StartProxy(t, redistest.URLs(masters)))
	mark := "#m" + strings.Repeat("1", 36) + strings.Repeat("2", 36)
	kit.Must(t, kit.SendToMaster(masters[0], "SET", "k", mark, "PX", "600000"))
	kit.WantGrant(t, client, "LOCK", "k", "me", "PX", "600000")
	kit.Eventually(t, func() error { return kit.CheckToken(masters[0], "0", "k", "me") })
	kit.Want(t, client, int64(1), "UNLOCK", "k", "me")
}
