package conf

import "fmt"

// removedSettings maps settings of earlier versions to their replacement and what to do.
var removedSettings = map[string]string{
	"upstream-connections": "each client has a connection of its own to the upstream; remove it",
}

// RemovedSetting returns, for a setting of an earlier version, that it no longer exists and what to
// do. It is empty for any other name.
func RemovedSetting(name string) string {
	if why := removedSettings[name]; why != "" {
		return "no longer a setting: " + why
	}
	return ""
}

// unknown returns the error for an unknown setting or variable. known are the valid names.
func unknown(where, name string, known []string) error {
	if text := RemovedSetting(nameOf(name)); text != "" {
		return fmt.Errorf("%s: %s", where, text)
	}
	return fmt.Errorf("%s: unknown setting (%s)", where, advice(name, known))
}
