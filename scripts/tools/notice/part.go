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

// section holds the section of NOTICE about one module.
type section struct {
	module
	licences []string // SPDX identifiers
	texts    []string
}

// licenceFilePattern matches the names of files with licences and notices.
var licenceFilePattern = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|copyright)([.-].*)?$`)

// minCoverage is the minimum share of a licence file, in percent, that must be text of known
// licences. The rest is names and years.
const minCoverage = 75

// allowedLicences lists the licences of modules that the program may link. A maintainer must read
// any further licence before adding it. MPL-2.0 requires a statement about the place of the source.
// The heading of NOTICE contains this statement.
var allowedLicences = []string{"Apache-2.0", "BSL-1.0", "BSD-2-Clause", "BSD-3-Clause", "MIT", "MPL-2.0", "Unlicense"}

func sectionOf(m linkedModule) (section, error) {
	p := section{module: m.module}
	for _, folder := range slices.Sorted(maps.Keys(m.folders)) {
		if err := p.read(folder); err != nil {
			return section{}, fmt.Errorf("%s: %w", m.Path, err)
		}
	}
	if len(p.licences) == 0 {
		return section{}, fmt.Errorf("%s %s has no licence file", m.Path, m.Version)
	}
	slices.Sort(p.licences)
	p.licences = slices.Compact(p.licences)
	return p, nil
}

// read adds the licences and notices in a folder.
func (p *section) read(folder string) error {
	files, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, f := range files {
		if f.IsDir() || !licenceFilePattern.MatchString(f.Name()) {
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

// licences returns the SPDX identifiers of the licences in a text. It returns an error if a licence
// is unknown or not allowed.
func licences(text []byte) (names []string, err error) {
	cover := licensecheck.Scan(text)
	if cover.Percent < minCoverage {
		return nil, fmt.Errorf("only %.0f %% of the file is a known licence, want at least %d %%",
			cover.Percent, minCoverage)
	}
	for _, m := range cover.Match {
		if !slices.Contains(allowedLicences, m.ID) {
			return nil, fmt.Errorf("the licence %s is not among %v", m.ID, allowedLicences)
		}
		names = append(names, m.ID)
	}
	return names, nil
}
