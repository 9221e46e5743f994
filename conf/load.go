package conf

import (
	"errors"
	"fmt"
)

// Source is everything that a configuration is read from.
type Source struct {
	// Flags holds the values of the flags that were given on the command line, by setting name.
	// Flags that were not given must not be in it, or their defaults would beat the environment and
	// the file.
	Flags map[string][]string
	// Environ is the environment as of os.Environ.
	Environ []string
	// File is the path of the YAML file. If it is empty, the variable REDLOCK_CONFIG names the
	// file, and if that is unset or empty, too, there is none.
	File string
}

// Load reads the configuration and checks it. The error joins one line for everything that is
// wrong, each with the file and line, the variable or the flag that it comes from; then the Config
// is empty.
func Load(src Source) (Config, error) {
	r := read(src)
	r.validate()
	return r.result()
}

// Read is [Load] for commands that need a few settings only: what is given must be right, but
// nothing need be given, and values need not fit together.
func Read(src Source) (Config, error) { return read(src).result() }

// given is one value and the place where somebody wrote it: "conf.yaml:7: max-ttl",
// "REDLOCK_MAX_TTL", "--max-ttl".
type given struct {
	where string
	value string
}

// entry is all that one source gives for one setting: several values if it is repeated, perhaps
// none.
type entry struct {
	where      string
	values     []given
	incomplete bool // values are missing here, because of errors that are reported already
}

// layer is all that one source gives, by setting name.
type layer map[string]entry

// reading is the state of one load.
type reading struct {
	config Config
	origin layer           // where the values in config come from, without the defaults
	failed map[string]bool // settings with an error already reported
	broken bool            // the file could not be understood, so what is missing may be in it
	errs   []error
}

func read(src Source) *reading {
	r := &reading{config: Default(), origin: layer{}, failed: map[string]bool{}}
	env := environment(src.Environ)
	r.apply(r.fileLayer(src.File, env))
	fromEnv, errs := env.layer()
	r.apply(fromEnv, errs)
	r.apply(flagLayer(src.Flags))
	return r
}

// apply puts a layer over what is read so far.
func (r *reading) apply(l layer, errs []error) {
	r.errs = append(r.errs, errs...)
	for _, s := range table {
		if e, ok := l[s.Name]; ok {
			r.applyEntry(s, e)
		}
	}
}

func (r *reading) applyEntry(s Setting, e entry) {
	errs := e.check(s)
	if len(errs) > 0 || e.incomplete {
		r.fail(s, errs...)
		return
	}
	if err := s.set(&r.config, e.texts()); err != nil {
		r.fail(s, fmt.Errorf("%s: %w", e.where, err))
		return
	}
	r.origin[s.Name] = e
}

func (r *reading) fail(s Setting, errs ...error) {
	r.failed[s.Name] = true
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
			errs = append(errs, fmt.Errorf("%s: %s", v.where, quoted(s, v.value, err)))
		}
	}
	return errs
}

// validate adds what is wrong between the settings, leaving out what only follows from an error
// already reported.
func (r *reading) validate() {
	for _, p := range r.config.crossProblems() {
		if r.broken || r.failed[p.setting] || p.mirror != nil && r.failed[p.mirror.setting] {
			continue
		}
		r.errs = append(r.errs, r.blame(p))
	}
}

// blame reports p with the place of the value at fault, if somebody gave it, or else that of its
// mirror.
func (r *reading) blame(p problem) error {
	e, given := r.origin[p.setting]
	if !given && p.mirror != nil {
		return r.blame(*p.mirror)
	}
	where := p.setting
	if p.index < len(e.values) {
		where = e.values[p.index].where
	}
	return fmt.Errorf("%s: %s", where, p.text)
}

func (r *reading) result() (Config, error) {
	if len(r.errs) > 0 {
		return Config{}, errors.Join(r.errs...)
	}
	return r.config, nil
}
