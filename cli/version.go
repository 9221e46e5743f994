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
	// Commit is the commit that the linker set, or empty: then Go's build information is used.
	Commit string
}

// commit returns the commit, with a mark if the checkout was modified: as the linker set it, else
// as Go found it in the checkout.
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
