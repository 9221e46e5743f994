package redistest

import (
	"os"
	"testing"
)

// SkipMissing skips a test that needs a program which is not installed, with a message. With
// CI=true or REDLOCK_REQUIRE_ALL=1, which require all tests, it fails the test.
func SkipMissing(t testing.TB, program string) {
	t.Helper()
	if os.Getenv("CI") == "true" || os.Getenv("REDLOCK_REQUIRE_ALL") == "1" {
		t.Fatalf("MISSING, and everything is required here: %s (scripts/install-deps installs it)", program)
	}
	t.Skipf("SKIPPED, NOT TESTED, missing: %s (scripts/install-deps installs it)", program)
}
