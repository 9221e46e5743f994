package conf

import (
	"maps"
	"slices"
)

// flagLayer returns the settings among the flags that were given.
func flagLayer(flags map[string][]string) (layer, []error) {
	found := layer{}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		if _, known := byName(name); !known {
			errs = append(errs, unknown("--"+name, name, settingNames()))
			continue
		}
		found[name] = asWritten("--"+name, flags[name])
	}
	return found, errs
}

// asWritten is the entry of values that are all written in one place.
func asWritten(where string, values []string) entry {
	e := entry{where: where}
	for _, value := range values {
		e.values = append(e.values, given{where, value})
	}
	return e
}
