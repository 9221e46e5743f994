package redistest

import (
	"os"
	"testing"
)

// Absent skips a test that needs something which is not installed, and says so, or fails it where
// everything must be tested: with CI=true or REDLOCK_REQUIRE_ALL=1.
func Absent(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" || os.Getenv("REDLOCK_REQUIRE_ALL") == "1" {
		t.Fatalf("MISSING, and everything is required here: %s (scripts/install-deps installs it)", what)
	}
	t.Skipf("SKIPPED, NOT TESTED, missing: %s (scripts/install-deps installs it)", what)
}
