package conf

import (
	"maps"
	"slices"
)

// flagLayer returns the settings among the given flags.
func flagLayer(flags map[string][]string) (layer, []error) {
	found := layer{}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		s, known := byName(name)
		if !known {
			errs = append(errs, unknown("--"+name, name, settingNames()))
			continue
		}
		if err := found.add(s, asWritten("--"+name, flags[name]), name); err != nil {
			errs = append(errs, err)
		}
	}
	return found, errs
}

// asWritten returns the entry of values that all come from one source.
func asWritten(where string, values []string) entry {
	e := entry{where: where}
	for _, value := range values {
		e.values = append(e.values, sourcedValue{where, value})
	}
	return e
}
