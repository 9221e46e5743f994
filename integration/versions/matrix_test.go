//go:build integration

package versions

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestMatrix tests each installed version in all roles. In make versions it fails unless
// docs/compatibility.md lists exactly these versions. Otherwise TestMatrix only logs a difference,
// because new releases appear at any time.
func TestMatrix(t *testing.T) {
	redistest.SkipShort(t)
	installed := redistest.Versions()
	if len(installed) == 0 {
		redistest.SkipMissing(t, "servers of other releases (scripts/versions fetches them)")
	}
	page, err := os.ReadFile("../../docs/compatibility.md")
	kit.Must(t, err)
	var listedVersions []string
	for _, row := range regexp.MustCompile(`(?m)^\| ((?:redis|valkey)-[0-9.]+) \| yes \| yes \| yes \|$`).FindAllSubmatch(page, -1) {
		listedVersions = append(listedVersions, string(row[1]))
	}
	switch same := slices.Equal(listedVersions, installed); {
	case !same && os.Getenv("REDLOCK_TEST_PAGE") != "":
		t.Errorf("docs/compatibility.md lists %v, and there are %v", listedVersions, installed)
	case !same:
		t.Logf("docs/compatibility.md lists %v, and there are %v", listedVersions, installed)
	}
	for i, version := range installed {
		t.Run(version, func(t *testing.T) {
			if slices.Contains(redistest.OldestAndNewest(), version) {
				return // TestRoles tests this version
			}
			testRoles(t, startServers(t, version, version, version), startServers(t, installed[(i+1)%len(installed)])[0])
			testRoles(t, startServers(t, redistest.InstalledVersion, version, redistest.InstalledVersion), startServers(t, version)[0])
		})
	}
}
