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
		s, known := findSetting(name)
		if !known {
			errs = append(errs, unknownSettingError("--"+name, name, settingNames()))
			continue
		}
		if err := found.add(s, newEntry("--"+name, flags[name]), name); err != nil {
			errs = append(errs, err)
		}
	}
	return found, errs
}

// newEntry returns the entry of values that all come from one source.
func newEntry(origin string, values []string) entry {
	e := entry{origin: origin}
	for _, value := range values {
		e.values = append(e.values, sourcedValue{origin, value})
	}
	return e
}
