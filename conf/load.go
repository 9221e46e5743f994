package conf

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Source holds the sources of a configuration.
type Source struct {
	// Flags maps names of settings to the values of the flags on the command line. It must not
	// contain flags that were not given, or their defaults would override the environment and the
	// file.
	Flags map[string][]string
	// Environ is the environment, as os.Environ returns it.
	Environ []string
	// File is the path of the YAML file. If File is empty, the variable REDLOCK_CONFIG names the
	// file. If that variable is unset or empty, there is no file.
	File string
}

// Load reads the configuration and checks it. The error joins one line for each problem, with the
// file and line, the variable or the flag that it comes from. After an error, the Config is empty.
func Load(src Source) (Config, error) {
	r := read(src)
	r.validate()
	return r.result()
}

// Read reads the configuration for commands that need only a few settings. Unlike [Load], it
// requires no setting, and does not check whether settings are consistent with each other.
func Read(src Source) (Config, error) { return read(src).result() }

// sourcedValue holds one value with its source, such as "conf.yaml:7: max-ttl" or "--max-ttl".
type sourcedValue struct {
	origin string
	value  string
}

// entry holds all values that one source gives for one setting: none, one, or several.
type entry struct {
	origin         string
	values         []sourcedValue
	incomplete     bool // some values are missing because of errors that are already reported
	usesFormerName bool // the source uses the former name of the setting
}

// layer holds all values of one source, by the name of the setting.
type layer map[string]entry

// add adds the entry that one source gives for a setting under one of its names. It returns an
// error if the source has given the setting before, under either name.
func (l layer) add(s Setting, e entry, name string) error {
	if first, twice := l[s.Name]; twice {
		return fmt.Errorf("%s: given twice, first at %s", e.origin, first.origin)
	}
	e.usesFormerName = name != s.Name
	l[s.Name] = e
	return nil
}

// loader reads and checks one configuration.
type loader struct {
	config         Config
	entries        layer           // sources of the values in config, without the defaults
	failedSettings map[string]bool // settings with an error already reported
	fileBroken     bool            // the file is unreadable: settings may seem to be missing
	errs           []error
}

// lastWithFormerNames is the last minor version that accepts the former names of settings.
const lastWithFormerNames = "0.5"

func read(src Source) *loader {
	r := &loader{config: Default(), entries: layer{}, failedSettings: map[string]bool{}}
	env := environment(src.Environ)
	r.apply(r.readFileLayer(src.File, env))
	fromEnv, errs := env.layer()
	r.apply(fromEnv, errs)
	r.apply(flagLayer(src.Flags))
	return r
}

// apply overrides the values read so far with the values of a layer.
func (r *loader) apply(l layer, errs []error) {
	r.errs = append(r.errs, errs...)
	for _, s := range settingsTable {
		e, ok := l[s.Name]
		if !ok {
			continue
		}
		if e.usesFormerName {
			r.config.formerNameWarnings = append(r.config.formerNameWarnings, fmt.Sprintf("%s: former name of %s; it works until %s",
				e.origin, s.Name, lastWithFormerNames))
		}
		r.applyEntry(s, e)
	}
}

func (r *loader) applyEntry(s Setting, e entry) {
	errs := e.check(s)
	if len(errs) > 0 || e.incomplete {
		r.fail(s, errs...)
		return
	}
	if err := s.set(&r.config, e.texts()); err != nil {
		r.fail(s, fmt.Errorf("%s: %w", e.origin, err))
		return
	}
	r.entries[s.Name] = e
}

func (r *loader) fail(s Setting, errs ...error) {
	r.failedSettings[s.Name] = true
	r.errs = append(r.errs, errs...)
}

func (e entry) texts() []string {
	texts := make([]string, len(e.values))
	for i, v := range e.values {
		texts[i] = v.value
	}
	return texts
}

func (e entry) check(s Setting) []error {
	var errs []error
	for _, v := range e.values {
		if err := s.check(v.value); err != nil {
			errs = append(errs, fmt.Errorf("%s: %s", v.origin, valueProblem(s, v.value, err)))
		}
	}
	return errs
}

// validate adds an error for each conflict between settings. It omits problems that merely follow
// from an error that is already reported.
func (r *loader) validate() {
	for _, p := range r.config.conflicts() {
		if r.fileBroken || r.failedSettings[p.setting] || p.counterpart != nil && r.failedSettings[p.counterpart.setting] {
			continue
		}
		r.errs = append(r.errs, r.withOrigin(p))
	}
}

// withOrigin returns p as an error with the source of the value at fault. If that value is a
// default, it returns the counterpart of p instead, if there is one.
func (r *loader) withOrigin(p problem) error {
	e, given := r.entries[p.setting]
	if !given && p.counterpart != nil {
		return r.withOrigin(*p.counterpart)
	}
	where := p.setting
	if p.index < len(e.values) {
		where = e.values[p.index].origin
	}
	return fmt.Errorf("%s: %s", where, p.text)
}

func (r *loader) result() (Config, error) {
	if len(r.errs) > 0 {
		return Config{}, errors.Join(limitErrors(r.errs)...)
	}
	r.config.given = slices.Collect(maps.Keys(r.entries))
	return r.config, nil
}

// maxErrors limits the number of listed errors, so that the proxy can log the list.
const maxErrors = 50

// limitErrors returns the first maxErrors errors, and an error with the number of further errors.
func limitErrors(errs []error) []error {
	if len(errs) <= maxErrors {
		return errs
	}
	return append(errs[:maxErrors:maxErrors], fmt.Errorf("number of further errors: %d", len(errs)-maxErrors))
}
