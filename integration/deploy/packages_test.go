//go:build integration

package deploy

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"redlock-proxy/integration/kit"
)

// TestPackage checks that the packages install the program, the unit, the manual page and the
// settings file, and that the settings file has the unit's user as its group. It also checks the
// sources of all installed files, the unit's manual page and group, and the packages' scripts.
func TestPackage(t *testing.T) {
	t.Parallel()
	var packageInfo struct {
		Contents []struct {
			Src, Dst, Type string
			Info           struct{ Group string } `yaml:"file_info"`
		}
		Scripts map[string]string
	}
	kit.Must(t, yaml.Unmarshal([]byte(readFile(t, "deploy/packages/nfpm.yaml")), &packageInfo))
	u := readUnit(t)
	user := u.value(t, "User")
	groups, sources := map[string]string{}, releaseFiles(t)
	for _, c := range packageInfo.Contents {
		groups[c.Dst] = c.Info.Group
		name, inFiles := strings.CutPrefix(c.Src, "${FILES}/")
		if c.Type != "dir" && !(inFiles && slices.Contains(sources, name)) {
			t.Errorf("%s: the release makes no source %q; it makes %q", c.Dst, c.Src, sources)
		}
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
	for _, script := range packageInfo.Scripts {
		kit.Must(t, exec.Command("sh", "-n", repositoryRoot+script).Run())
	}
	if !strings.Contains(readFile(t, packageInfo.Scripts["preinstall"]), "useradd --system --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin "+user+"\n") {
		t.Errorf("preinstall does not make the user %s", user)
	}
}

// releaseFiles returns the names of the files that scripts/release makes or copies for a package,
// in the folder that it passes to nfpm as FILES. The copied files must exist.
func releaseFiles(t *testing.T) (names []string) {
	t.Helper()
	script := readFile(t, "scripts/release")
	for _, made := range regexp.MustCompile(`-o "\$folder/(\S+)" \.|>"\$work/shared/(\S+)"`).FindAllStringSubmatch(script, -1) {
		names = append(names, made[1]+made[2])
	}
	copied := regexp.MustCompile(`(?m)^  cp -r (.*) "\$work/shared/\." "\$folder"$`).FindStringSubmatch(script)
	if copied == nil || len(names) == 0 {
		t.Fatalf("scripts/release makes %q, and copies %q", names, copied)
	}
	for _, file := range strings.Fields(copied[1]) {
		readFile(t, file)
		names = append(names, filepath.Base(file))
	}
	return names
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
