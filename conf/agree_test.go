package conf

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// fileText reads a file of the repository.
func fileText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// wantedDefaults returns the defaults as a document should have them, by name.
func wantedDefaults() map[string]string {
	want := map[string]string{}
	for _, s := range Settings() {
		switch {
		case s.IsList:
			want[s.Name] = "none"
		case s.Default == "":
			want[s.Name] = `""`
		default:
			want[s.Name] = s.Default
		}
	}
	return want
}

// wantDefaults fails for each setting whose default in the document differs, or that the document
// or the program lacks.
func wantDefaults(t *testing.T, document string, got map[string]string) {
	t.Helper()
	want := wantedDefaults()
	names := slices.Concat(slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(got)))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if got[name] != want[name] {
			t.Errorf("%s says that the default of %q is %q, the program %q", document, name, got[name], want[name])
		}
	}
}

// TestSettingsTable compares the table of docs/settings.md with the program: every name, in order,
// with its default.
func TestSettingsTable(t *testing.T) {
	rows := regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| `?([^`|]*?)`? \\| [^|]+ \\|$").FindAllStringSubmatch(fileText(t, "../docs/settings.md"), -1)
	got := map[string]string{}
	var order []string
	for _, row := range rows {
		got[row[1]] = row[2]
		order = append(order, row[1])
	}
	wantDefaults(t, "docs/settings.md", got)
	if want := settingNames(); !slices.Equal(order, want) {
		t.Errorf("docs/settings.md has the settings in the order %v, the program in %v", order, want)
	}
}

// TestExampleDefaults compares the settings in conf.example.yaml with the program.
func TestExampleDefaults(t *testing.T) {
	got := map[string]string{}
	for _, line := range regexp.MustCompile(`(?m)^([a-z-]+):(.*)$`).FindAllStringSubmatch(fileText(t,
		"../conf.example.yaml"), -1) {
		value := regexp.MustCompile(`^\s+`).ReplaceAllString(line[2], "")
		if value == "" || value == "[]" { // a list, which is an example or empty
			value = "none"
		}
		got[line[1]] = value
	}
	wantDefaults(t, "conf.example.yaml", got)
}

// TestNamedSettings checks that every flag and variable in the documents exists in the program.
func TestNamedSettings(t *testing.T) {
	known := map[string]bool{"--config": true, FileEnv: true, LockKeyEnv: true, LockTokenEnv: true, LockFenceEnv: true}
	for _, s := range Settings() {
		known["--"+s.Name], known[s.Env()] = true, true
	}
	foreignFlags := map[string]bool{"--key": true} // a flag of redis-cli
	named := regexp.MustCompile(`REDLOCK_[A-Z_]+[A-Z]|--(?:master|upstream|listen|max|guard|fresh|key|lock|drain|log|config)[a-z-]*`)
	paths := []string{"../README.md", "../conf.example.yaml", "../docker-compose.yml", "../deploy/compose/conf.yaml",
		"../deploy/compose/tls.yml"}
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal("no pages in docs", err)
	}
	for _, path := range append(paths, pages...) {
		for _, name := range named.FindAllString(fileText(t, path), -1) {
			if !known[name] && !foreignFlags[name] {
				t.Errorf("%s names %s, which is no setting", path, name)
			}
		}
	}
}

// TestComposeFile checks that the settings of the Compose deployment are valid, and that its
// masters are configured as docs/deploy.md and conf.example.yaml require.
func TestComposeFile(t *testing.T) {
	config, err := Load(Source{File: "../deploy/compose/conf.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	if warnings := config.Warnings(); len(warnings) > 0 {
		t.Errorf("the deployment is not recommended: %q", warnings)
	}
	masters := fileText(t, "../deploy/compose/masters.conf")
	for _, want := range []string{"appendonly yes", "appendfsync always", "maxmemory-policy noeviction"} {
		if !regexp.MustCompile(`(?m)^` + want + `$`).MatchString(masters) {
			t.Errorf("masters.conf lacks %q", want)
		}
	}
}
