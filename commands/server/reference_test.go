package server

import (
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/commands/lockdetect"
	"redlock-proxy/commands/move/directwrites"
	"redlock-proxy/quorum"
	"redlock-proxy/quorum/availability"
)

// TestReference checks that docs/info.md has a row for each field of the code, in every mode, and
// no other rows.
func TestReference(t *testing.T) {
	documented, written := documentedFields(t), writtenFields(t)
	for _, name := range slices.Sorted(maps.Keys(written)) {
		if !documented[name] {
			t.Errorf("docs/info.md has no row for %s", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(documented)) {
		if !written[name] {
			t.Errorf("docs/info.md has a row for %s, which no code writes", name)
		}
	}
}

// TestReferenceOfReply checks that docs/info.md has a row for each line of a reply to PROXY INFO,
// however the code composes it.
func TestReferenceOfReply(t *testing.T) {
	documented := documentedFields(t)
	notices := lockdetect.New(slog.New(slog.DiscardHandler))
	notices.Count([][]byte{[]byte("set"), []byte("job:1"), []byte("x"), []byte("nx"), []byte("px"),
		[]byte("9")}, func([]byte) bool { return false })
	s := New(Options{
		Masters: func() []quorum.MasterStatus {
			return []quorum.MasterStatus{{Name: "m", Since: time.Now(),
				WatchedKeys: 1}}
		},
		Clients: func() int { return 1 }, WaiterCount: func() int { return 0 }, MaxClients: func() int { return 9 },
		AcceptErrors:  func() int64 { return 0 },
		Upstream:      func() (string, error) { return "u", os.ErrDeadlineExceeded },
		LockKeyCounts: func() (int64, int64) { return 0, 0 },
		Availability:  func() availability.Inputs { return availability.Inputs{Movable: true} },
		DirectWrites:  directwrites.New(directwrites.Options{LockKeys: []string{"lock:*"}}), LockDetector: notices,
	})
	lines := 0
	for line := range strings.SplitSeq(s.proxyInfo(), "\r\n") {
		if line == "" || strings.HasPrefix(line, "# ") {
			continue
		}
		lines++
		field, _, _ := strings.Cut(line, ":")
		if name := regexp.MustCompile(`[0-9]+`).ReplaceAllString(field, "N"); !documented[name] {
			t.Errorf("docs/info.md has no row for %s", name)
		}
	}
	if lines < 20 {
		t.Errorf("only %d lines", lines)
	}
}

// documentedFields returns the names in the rows of docs/info.md. A row names a line, or a line and
// a field in that line.
func documentedFields(t *testing.T) map[string]bool {
	t.Helper()
	page, err := os.ReadFile("../../docs/info.md")
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]bool{"redlock_proxy_version": strings.Contains(string(page), "`redlock_proxy_version`")}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-zN_]+)`(?: `([a-z_]+)`)? \\|").FindAllStringSubmatch(string(page), -1) {
		fields[strings.TrimSpace(row[1]+" "+row[2])] = true
	}
	return fields
}

// writtenFields returns the fields that string literals in the code name. If a literal names no
// line, its fields count as fields of a master's line.
func writtenFields(t *testing.T) map[string]bool {
	t.Helper()
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]bool{}
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), source, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				text, _ := strconv.Unquote(lit.Value)
				addFields(fields, strings.ReplaceAll(text, "%d", "N"))
			}
			return true
		})
	}
	return fields
}

var (
	lineName  = regexp.MustCompile(`^((?:proxy|upstream|redlock)_[a-zN_]+):`)
	fieldName = regexp.MustCompile(`(?:^|[,:])([a-z_]+)=`)
)

func addFields(fields map[string]bool, text string) {
	line := "redlock_masterN"
	if found := lineName.FindStringSubmatch(text); found != nil {
		line = found[1]
		fields[line] = true
	}
	for _, found := range fieldName.FindAllStringSubmatch(text, -1) {
		fields[line+" "+found[1]] = true
	}
}
