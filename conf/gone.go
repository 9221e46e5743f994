package conf

import "fmt"

// removedSettings maps settings of earlier versions to advice about their replacement.
var removedSettings = map[string]string{
	"upstream-connections": "each client has a connection of its own to the upstream; remove it",
}

// RemovedSettingAdvice returns advice about a setting of an earlier version that no longer exists.
// It is empty for any other name.
func RemovedSettingAdvice(name string) string {
	if text := removedSettings[name]; text != "" {
		return "no longer a setting: " + text
	}
	return ""
}

// unknownSettingError returns the error for an unknown setting or variable. validNames are the
// suggestions.
func unknownSettingError(origin, name string, validNames []string) error {
	if text := RemovedSettingAdvice(settingNameOf(name)); text != "" {
		return fmt.Errorf("%s: %s", origin, text)
	}
	return fmt.Errorf("%s: unknown setting (%s)", origin, advice(name, validNames))
}
