package harness

import "os"

// Test is what Absent needs of a *testing.T.
type Test interface {
	Helper()
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

// Absent skips a test that needs something which is not installed, and says so, or fails it where everything must be tested:
// with CI=true or REDLOCK_REQUIRE_ALL=1.
func Absent(t Test, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" || os.Getenv("REDLOCK_REQUIRE_ALL") == "1" {
		t.Fatalf("MISSING, and everything is required here: %s (scripts/install-deps installs it)", what)
	}
	t.Skipf("SKIPPED, NOT TESTED, missing: %s (scripts/install-deps installs it)", what)
}
