package cli

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"
)

// Build describes the source that this program was built from.
type Build struct {
	Version string
	// Commit is the commit that the linker set. If it is empty, the program shows the commit in
	// Go's build information.
	Commit string
}

// commit returns the commit that the linker set or, without one, the commit that Go found in the
// checkout. The suffix -dirty marks a modified checkout.
func (b Build) commit() string {
	found := map[string]string{}
	if info, known := debug.ReadBuildInfo(); known {
		for _, s := range info.Settings {
			found[s.Key] = s.Value
		}
	}
	revision := found["vcs.revision"]
	if found["vcs.modified"] == "true" {
		revision += "-dirty"
	}
	return cmp.Or(b.Commit, revision, "unknown")
}

// buildKey is the key of the Build in the metadata of an App.
const buildKey = "build"

func versionAction(c *cli.Context) error {
	b, _ := c.App.Metadata[buildKey].(Build)
	_, err := fmt.Fprintf(c.App.Writer, "%s %s (commit %s, %s)\n", c.App.Name, b.Version, b.commit(), runtime.Version())
	return err
}
