//go:build integration

package deploy

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"redlock-proxy/integration/kit"
)

// TestPackage checks that the packages install the files that the unit names, with the unit's user
// as their group. It also checks the unit's page and group, and the packages' scripts.
func TestPackage(t *testing.T) {
	t.Parallel()
	var about struct {
		Contents []struct {
			Dst  string
			Info struct{ Group string } `yaml:"file_info"`
		}
		Scripts map[string]string
	}
	kit.Must(t, yaml.Unmarshal([]byte(readFile(t, "deploy/packages/nfpm.yaml")), &about))
	u := readUnit(t)
	user := u.value(t, "User")
	groups := map[string]string{}
	for _, c := range about.Contents {
		groups[c.Dst] = c.Info.Group
	}
	for path, group := range map[string]string{installedProgram: "", settingsFile: user,
		"/usr/lib/systemd/system/redlock-proxy.service": "", "/usr/share/man/man8/redlock-proxy.8.gz": ""} {
		if got, known := groups[path]; !known || got != group {
			t.Errorf("%s: there is %v, of the group %q, want %q", path, known, got, group)
		}
	}
	if !slices.Equal(u["Documentation"], []string{"man:redlock-proxy(8)"}) || u.value(t, "Group") != user {
		t.Errorf("the unit has the page %q and the group %q", u["Documentation"], u["Group"])
	}
	for _, script := range about.Scripts {
		kit.Must(t, exec.Command("sh", "-n", repositoryRoot+script).Run())
	}
	if !strings.Contains(readFile(t, about.Scripts["preinstall"]), "useradd --system --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin "+user+"\n") {
		t.Errorf("preinstall does not make the user %s", user)
	}
}

// TestPackagedSettings checks that the settings file has no active setting, and is valid with all
// settings enabled.
func TestPackagedSettings(t *testing.T) {
	t.Parallel()
	text := readFile(t, "deploy/packages/config.yaml")
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") && line != "\n" {
			t.Errorf("%q is set from the beginning", line)
		}
	}
	used := regexp.MustCompile(`(?m)^#(  - |[a-z])`).ReplaceAllString(text, "$1")
	file := writeFile(t, "config.yaml", used)
	cmd := exec.Command(buildProxy(t), "serve", "--check-config", "--config", file)
	cmd.Env = environ()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
