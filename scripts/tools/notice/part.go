package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// part is what NOTICE says of one module.
type part struct {
	module
	licences []string // by their names in SPDX
	texts    []string
}

// isLegal finds the files that state rights, by their names.
var isLegal = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|copyright)([.-].*)?$`)

// known is how much of a licence's file must be of licences that are known, in percent: what is
// left are names and years.
const known = 75

// allowed are the licences under which others' work may be linked in. Another one needs somebody to
// read it first. MPL-2.0 wants it said where the source is, which the heading of NOTICE does.
var allowed = []string{"Apache-2.0", "BSL-1.0", "BSD-2-Clause", "BSD-3-Clause", "MIT", "MPL-2.0", "Unlicense"}

func partOf(u use) (part, error) {
	p := part{module: u.module}
	for _, folder := range slices.Sorted(maps.Keys(u.folders)) {
		if err := p.read(folder); err != nil {
			return part{}, fmt.Errorf("%s: %w", u.Path, err)
		}
	}
	if len(p.licences) == 0 {
		return part{}, fmt.Errorf("%s %s has no licence", u.Path, u.Version)
	}
	slices.Sort(p.licences)
	p.licences = slices.Compact(p.licences)
	return p, nil
}

// read adds what the files of a folder state.
func (p *part) read(folder string) error {
	files, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, f := range files {
		if f.IsDir() || !isLegal.MatchString(f.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, f.Name()))
		if err != nil {
			return err
		}
		p.texts = append(p.texts, string(bytes.TrimSpace(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")))))
		if strings.HasPrefix(strings.ToLower(f.Name()), "notice") {
			continue
		}
		names, err := licences(text)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name(), err)
		}
		p.licences = append(p.licences, names...)
	}
	return nil
}

// licences are the names of those in a text, all of which are allowed.
func licences(text []byte) (names []string, err error) {
	cover := licensecheck.Scan(text)
	if cover.Percent < known {
		return nil, fmt.Errorf("%.0f %% of it is a known licence, not %d %%", cover.Percent, known)
	}
	for _, m := range cover.Match {
		if !slices.Contains(allowed, m.ID) {
			return nil, fmt.Errorf("the licence %s is not among %v", m.ID, allowed)
		}
		names = append(names, m.ID)
	}
	return names, nil
}
