package redistest

import (
	"os"
	"testing"
)

// SkipMissing skips the test, with a message that a program is not installed. If CI=true or
// REDLOCK_REQUIRE_ALL=1 is set, no test may be skipped, and SkipMissing fails the test instead.
func SkipMissing(t testing.TB, program string) {
	t.Helper()
	if os.Getenv("CI") == "true" || os.Getenv("REDLOCK_REQUIRE_ALL") == "1" {
		t.Fatalf("MISSING, and everything is required here: %s (scripts/install-deps installs it)", program)
	}
	t.Skipf("SKIPPED, NOT TESTED, missing: %s (scripts/install-deps installs it)", program)
}
