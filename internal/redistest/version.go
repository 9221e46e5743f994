package redistest

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// InstalledVersion is the name of the redis-server in PATH, for Options.Version and
// REDLOCK_TEST_SERVERS.
const InstalledVersion = "installed"

// ErrNoVersion means that scripts/versions has not fetched the requested version.
var ErrNoVersion = errors.New("scripts/versions has not fetched it")

// Versions returns the names of the releases that scripts/versions has fetched, such as
// redis-6.0.16 and valkey-9.1.2. Redis comes before Valkey, and older versions come before newer
// versions.
func Versions() []string {
	var names []string
	for name := range fetchedPrograms() {
		names = append(names, name)
	}
	slices.SortFunc(names, compareVersions)
	return names
}

// NewestOf returns the newest fetched version of "redis" or "valkey". If scripts/versions has
// fetched none, NewestOf skips the test; see SkipMissing.
func NewestOf(t testing.TB, kind string) string {
	t.Helper()
	all := Versions()
	for _, name := range slices.Backward(all) {
		if strings.HasPrefix(name, kind+"-") {
			return name
		}
	}
	SkipMissing(t, "a server "+kind+" of another release (scripts/versions fetches it)")
	return ""
}

// OldestAndNewest returns the oldest and the newest fetched versions of Redis and of Valkey.
func OldestAndNewest() []string {
	all := Versions()
	return slices.DeleteFunc(slices.Clone(all), func(name string) bool {
		kind, _, _ := strings.Cut(name, "-")
		i := slices.Index(all, name)
		return i > 0 && strings.HasPrefix(all[i-1], kind) && i+1 < len(all) && strings.HasPrefix(all[i+1], kind)
	})
}

// RequireFeature skips a test of a feature that Redis added in minVersion, such as 7.0, if
// REDLOCK_TEST_SERVERS names an older version. Valkey has all features of Redis 7.2.
func RequireFeature(t testing.TB, feature, minVersion string) {
	t.Helper()
	for name := range strings.SplitSeq(os.Getenv("REDLOCK_TEST_SERVERS"), ",") {
		numbers, isRedis := strings.CutPrefix(name, "redis-")
		if isRedis && slices.Compare(numbersOf(numbers), numbersOf(minVersion)) < 0 {
			t.Skipf("SKIPPED, NOT TESTED: %s has no %s, which is of Redis %s", name, feature, minVersion)
		}
	}
}

// fetchedPrograms returns the paths of the fetched programs by the names of their versions.
func fetchedPrograms() map[string]string {
	root := os.Getenv("REDLOCK_SERVERS")
	if cache, err := os.UserCacheDir(); root == "" && err == nil {
		root = filepath.Join(cache, "redlock-proxy", "servers")
	}
	files, _ := filepath.Glob(filepath.Join(root, "*", "version")) // fails on a bad pattern only
	programs := map[string]string{}
	for _, file := range files {
		if name, err := os.ReadFile(file); err == nil {
			programs[strings.TrimSpace(string(name))] = filepath.Join(filepath.Dir(file), "redis-server")
		}
	}
	return programs
}

// compareVersions orders names such as redis-6.0.16.
func compareVersions(a, b string) int {
	kindA, numbersA, _ := strings.Cut(a, "-")
	kindB, numbersB, _ := strings.Cut(b, "-")
	if kindA != kindB {
		return strings.Compare(kindA, kindB)
	}
	return slices.Compare(numbersOf(numbersA), numbersOf(numbersB))
}

func numbersOf(version string) []int {
	var numbers []int
	for part := range strings.SplitSeq(version, ".") {
		n, _ := strconv.Atoi(part)
		numbers = append(numbers, n)
	}
	return numbers
}

// versionAt returns the version of the server on a port: the requested version, if any. Otherwise
// it returns one of the comma-separated versions in REDLOCK_TEST_SERVERS, or InstalledVersion.
func versionAt(requested string, port int) string {
	if versions := os.Getenv("REDLOCK_TEST_SERVERS"); requested == "" && versions != "" {
		names := strings.Split(versions, ",")
		requested = names[port%len(names)]
	}
	return cmp.Or(requested, InstalledVersion)
}

// programOf returns the path of the redis-server program of a version.
func programOf(version string) (string, error) {
	if version == InstalledVersion {
		program, err := exec.LookPath("redis-server")
		if err != nil {
			return "", ErrNoRedis
		}
		return program, nil
	}
	program, known := fetchedPrograms()[version]
	if !known {
		return "", fmt.Errorf("%s: %w", version, ErrNoVersion)
	}
	return program, nil
}
