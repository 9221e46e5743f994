package conf

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// readFile applies text to the defaults as a configuration file, with some environment variables
// set.
func readFile(text string) *loader {
	r := &loader{config: Default(), entries: layer{}, failedSettings: map[string]bool{}}
	r.apply(r.parse("conf.yaml", []byte(text), environment{"HOST=redis-1", "PASSWORD=hunter2", "EMPTY=", "DOLLAR=$HOST"}))
	return r
}

func TestFileForms(t *testing.T) {
	tests := []struct{ name, file, want string }{
		{"empty", "", ""},
		{"comments only", "# nothing\n\n# here\n", ""},
		{"a document mark", "---\nlisten: a:1\n", `listen="a:1"`},
		{"Windows", "\ufefflisten: a:1\r\n\r\nkey-prefix: b\r\n", `listen="a:1" key-prefix="b"`},
		{"quotes", "listen: \"a:1\"\nkey-prefix: '5'\n", `listen="a:1" key-prefix="5"`},
		{"flow", "{listen: 'a:1', max-clients: 7}\n", `listen="a:1" max-clients="7"`},
		{"a quoted number", "max-clients: \"7\"\n", `max-clients="7"`},
		{"list forms", "master: [redis://a, 'redis://b']\n", `master="redis://a" master="redis://b"`},
		{"list without indent", "master:\n- redis://a\n- redis://b # second\n", `master="redis://a" master="redis://b"`},
		{"expansion", "master:\n- redis://:${PASSWORD}@${HOST}:1\nkey-prefix: ${EMPTY}$${HOST}$$\n",
			`master="redis://:xxxxx@redis-1:1" key-prefix="${HOST}$"`},
		{"expansion is not repeated", "key-prefix: ${DOLLAR}\n", `key-prefix="$HOST"`},
		{"expansion of a number", "max-clients: ${N}\n",
			`conf.yaml:1: max-clients: "${N}" needs the environment variable N, which is not set`},
		{"defaults with expansion", "listen: ${HOST:-a}:1\n", `conf.yaml:1: listen: "${HOST:-a}:1" has a $ that ` +
			`begins neither ${NAME} nor $$ (a dollar sign is written $$)`},
		{"not UTF-8", "key-prefix: \xff\n", "conf.yaml: not UTF-8 text"},
		{"null document", "~\n", `conf.yaml:1: expected lines of the form "name: value", found nothing`},
		{"a tab", "master:\n\t- redis://a\n", `conf.yaml:2: found character '	' that cannot start any token`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := readFile(test.file)
			if got := resultText(r); got != test.want {
				t.Fatalf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// resultText returns the error of a loader, or else the settings that differ from their defaults.
func resultText(r *loader) string {
	if _, err := r.result(); err != nil {
		return err.Error()
	}
	var changed []string
	for _, s := range settingsTable {
		for _, value := range s.get(r.config) {
			if value != s.Default {
				changed = append(changed, fmt.Sprintf("%s=%q", s.Name, s.redact(value)))
			}
		}
	}
	return strings.Join(changed, " ")
}

// TestDeeplyNestedFile checks that the loader refuses a file with deeply nested values before it
// parses the file. The parser would take gigabytes.
func TestDeeplyNestedFile(t *testing.T) {
	for _, content := range []string{
		strings.Repeat("[", maxFileSize), strings.Repeat("[\n", maxFileSize/2), "lock-keys: " + strings.Repeat("{a: ", maxFileSize/8),
		strings.Repeat("- ", maxFileSize/2), strings.Repeat("? ", maxFileSize/2),
		strings.Repeat("- ! ", maxFileSize/4),
	} {
		if _, err := parseYAML("f", []byte(content)); err == nil || !strings.Contains(err.Error(), "nested too deeply") {
			t.Errorf("%.20q…: %.100v", content, err)
		}
	}
	if _, err := parseYAML("f", []byte("lock-keys:\n- lock:[a-z]*\n- '[['\n"+strings.Repeat("- 'a'\n", 1000))); err != nil {
		t.Error(err)
	}
}

// TestLineNumbers compares the line number in an error with the position, in random files.
func TestLineNumbers(t *testing.T) {
	filler := rapid.SampledFrom([]string{"", "# a comment", "  # indented", "listen:\n\n  'a:1'",
		"key-prefix: \"a\n\n  b\"",
		"master:\n  - redis://a\n\n  # one\n  - redis://b", "log-level: info # at the end\n\n\n"})
	rapid.Check(t, func(t *rapid.T) {
		end := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "line end")
		lines := rapid.SliceOfDistinct(filler, func(s string) string { return s }).Draw(t, "lines")
		lines = append(lines, "max-ttl: 12x")
		text := strings.ReplaceAll(strings.Join(lines, "\n"), "\n", end)
		want := fmt.Sprintf("conf.yaml:%d: max-ttl: ", 1+strings.Count(text, "\n"))
		_, err := readFile(text).result()
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Fatalf("%q: got %v, want %s", text, err, want)
		}
	})
}

// FuzzFile checks that no file makes the loader panic. If the loader accepts a file, a file with
// the same settings must give the same configuration.
func FuzzFile(f *testing.F) {
	for _, seed := range []string{
		"", "listen: a:1\n", "master: [redis://a, redis://:${PASSWORD}@b]\n", "max-ttl: 1h30m\nmax-clients: 5\n",
		"key-prefix: \"\\u00e9$$\"\n", "a: &b c\nd: *b\n<<: *b\n", "? [x]\n: {y: !!str 5}\n", "--- |\n x\n...\n---\n",
		"%YAML 1.2\n---\nlisten: 'a:1'", "listen: >-\n  a:1\r\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 2000 {
			t.Skip("the parser is slow on long nonsense")
		}
		first := readFile(text)
		config, err := first.result()
		if err != nil {
			return
		}
		var out strings.Builder
		for _, s := range settingsTable {
			if values := s.get(config); len(values) > 0 {
				out.WriteString(quoteYAML(s, values))
			}
		}
		again, err := readFile(out.String()).result()
		if err != nil || fmt.Sprint(again.Masters) != fmt.Sprint(config.Masters) || again.String() != config.String() {
			t.Fatalf("%q\nwritten again as\n%s\ngives %v, %v", text, out.String(), again, err)
		}
	})
}

// quoteYAML returns a setting as YAML, quoted by %q, which YAML understands.
func quoteYAML(s Setting, values []string) string {
	var quoted []string
	for _, v := range values {
		quoted = append(quoted, fmt.Sprintf("%q", strings.ReplaceAll(v, "$", "$$")))
	}
	if s.IsList {
		return s.Name + ": [" + strings.Join(quoted, ", ") + "]\n"
	}
	return s.Name + ": " + quoted[0] + "\n"
}
