package describe

import (
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// appWithSpecialCharacters returns a command line with texts that are special in shells and in
// roff.
func appWithSpecialCharacters() *cli.App {
	return &cli.App{
		Name: "a-b", Usage: `it's "one"`, Version: "v-1", Description: ".TH at the beginning",
		Flags: []cli.Flag{&cli.BoolFlag{Name: "quick", Aliases: []string{"q"}, Usage: "[a]: b\\c"}},
		Commands: []*cli.Command{
			{Name: "go", Usage: "it's: so", ArgsUsage: "left|right", Flags: []cli.Flag{
				&cli.StringSliceFlag{Name: "at", Usage: "`PLACE`: where to go"},
				&cli.StringFlag{Name: "map", Usage: "`FILE`: a map", DefaultText: "m.txt"},
				&cli.BoolFlag{Name: "fast", Usage: "without `end", DefaultText: "true"},
				&cli.BoolFlag{Name: "slow", Usage: "'tis so"},
			}},
			{Name: "secret", Hidden: true},
		},
	}
}

func TestFlags(t *testing.T) {
	got := commands(appWithSpecialCharacters())
	want := []flag{
		{Names: []string{"--at"}, Value: "PLACE", Usage: "where to go", IsList: true},
		{Names: []string{"--map"}, Value: "FILE", Usage: "a map", Default: "m.txt"},
		{Names: []string{"--fast"}, Usage: "without `end", Default: "true"},
		{Names: []string{"--slow"}, Usage: "'tis so"},
		helpFlag,
	}
	if len(got) != 1 || !slices.Equal(got[0].Words, []string{"left", "right"}) || len(got[0].Flags) != len(want) {
		t.Fatalf("got %+v", got)
	}
	for i, w := range want {
		if g := got[0].Flags[i]; !slices.Equal(g.Names, w.Names) || g.Value != w.Value || g.Usage != w.Usage ||
			g.Default != w.Default || g.IsList != w.IsList {
			t.Errorf("got %+v, want %+v", g, w)
		}
	}
}

// wantLines checks that the text has each of these lines, apart from leading and trailing blanks.
func wantLines(t *testing.T, text string, lines ...string) {
	t.Helper()
	var got []string
	for line := range strings.Lines(text) {
		got = append(got, strings.TrimSpace(line))
	}
	for _, line := range lines {
		if !slices.Contains(got, line) {
			t.Errorf("there is no line %s in\n%s", line, text)
		}
	}
}

func TestZsh(t *testing.T) {
	var out strings.Builder
	if err := WriteZsh(&out, appWithSpecialCharacters()); err != nil {
		t.Fatal(err)
	}
	wantLines(t, out.String(), "#compdef a-b", "_a_b() {", `'go:it'\''s\: so'`, `'(--quick -q)-q[\[a\]\: b\\c]' \`,
		`'*--at=[where to go]:PLACE: ' \`, `'(--map)--map=[a map]:FILE:_files' \`, `'1:argument:(left right)'`)
}

func TestBash(t *testing.T) {
	var out strings.Builder
	if err := WriteBash(&out, appWithSpecialCharacters()); err != nil {
		t.Fatal(err)
	}
	wantLines(t, out.String(), "_a_b() {", "words='left right'", "values='--at' files='--map'", "complete -F _a_b a-b")
}

func TestMan(t *testing.T) {
	var out strings.Builder
	page := Page{Section: 8, Settings: appWithSpecialCharacters().Commands[0].Flags[:1], ExitMeanings: []string{"well"},
		SeeAlso: []string{"x(1)", "y-z(5)"}}
	if err := WriteMan(&out, appWithSpecialCharacters(), page); err != nil {
		t.Fatal(err)
	}
	wantLines(t, out.String(), `.TH A\-B 8 "" "a\-b v\-1" ""`, `a\-b \- it\(aqs \(dqone\(dq`, `\&.TH at the beginning`,
		`.SS "go left|right"`,
		`\fB\-\-map\fR \fIFILE\fR`, `a map (default: m.txt)`, `\(aqtis so`, `.BR x (1),`, `.BR y\-z (5)`)
	if strings.Count(out.String(), `\-\-at`) != 1 {
		t.Errorf("a shared setting is not described once:\n%s", &out)
	}
}

// TestManOfSettings checks a command that shares only one flag name with the settings. The manual
// page must not state that this command takes the settings.
func TestManOfSettings(t *testing.T) {
	settings := []cli.Flag{&cli.StringFlag{Name: "listen"}, &cli.StringFlag{Name: "ca"}}
	app := &cli.App{Name: "a", Commands: []*cli.Command{
		{Name: "serve", Flags: append(slices.Clone(settings), &cli.BoolFlag{Name: "check"})},
		{Name: "lock", Flags: settings[1:]},
	}}
	var out strings.Builder
	if err := WriteMan(&out, app, Page{Settings: settings}); err != nil {
		t.Fatal(err)
	}
	serve, lock, _ := strings.Cut(out.String(), `.SS "lock`)
	lock, _, _ = strings.Cut(lock, ".SH")
	if !strings.Contains(serve, "It takes the") || strings.Contains(lock, "It takes the") ||
		!strings.Contains(lock, `\-\-ca`) || strings.Contains(serve, `\-\-ca`) {
		t.Errorf("%s", out.String())
	}
}

// TestHelp checks that the help of a command shows its own flags first. If the command takes the
// settings, the settings follow, or a reference to the command that lists the settings.
func TestHelp(t *testing.T) {
	settings := []cli.Flag{&cli.StringFlag{Name: "listen",
		Usage: "`ADDR`: where " + strings.Repeat("clients ", 20) + "connect", DefaultText: "x:1"},
		&cli.StringFlag{Name: "ca"}}
	serve := &cli.Command{Name: "serve", Usage: "serve clients", Flags: append(slices.Clone(settings),
		&cli.BoolFlag{Name: "check", Usage: "only check"})}
	lock := &cli.Command{Name: "lock", Usage: "hold a lock", ArgsUsage: "KEY", Flags: settings[1:]}
	want := `serve clients

Usage: a serve [flags]

Flags:
  --check
        only check
  --help, -h
        show help
`
	if got := Help("a", serve, settings, "run"); got != want+"\nIt also takes all settings, as flags, environment variables or a file: see 'a run --help'.\n" {
		t.Errorf("got\n%s", got)
	}
	got := Help("a", serve, settings, "")
	if !strings.HasPrefix(got, want+"\nSettings, ") ||
		!strings.Contains(got, "\n  --listen ADDR\n        where clients ") || !strings.HasSuffix(got, "  --ca VALUE\n\n") {
		t.Errorf("got\n%s", got)
	}
	for line := range strings.Lines(got) {
		if len(line) > Width+1 {
			t.Errorf("a line has more than %d columns: %s", Width, line)
		}
	}
	if got := Help("a", lock, settings, "serve"); !strings.Contains(got, "Usage: a lock [flags] KEY\n") ||
		!strings.Contains(got, "--ca VALUE\n") || strings.Contains(got, "settings") {
		t.Errorf("got\n%s", got)
	}
}
