package cli

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"redlock-proxy/conf"
)

// durationError matches the error of package flag for a duration that it cannot parse.
var durationError = regexp.MustCompile(`^invalid value "(.*)" for flag -(.+): parse error$`)

// usageError returns an error of one line about a flag. Printing the whole help would hide it.
func usageError(c *cli.Context, err error, _ bool) error {
	if match := durationError.FindStringSubmatch(err.Error()); match != nil {
		return fmt.Errorf(`--%s: "%s" is not a duration (a number and a unit, such as "100ms" or "24h")`, match[2], match[1])
	}
	hint := ""
	if name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -"); unknown {
		if gone := conf.RemovedSettingAdvice(name); gone != "" {
			return fmt.Errorf("--%s: %s", name, gone)
		}
		hint = flagHint(c, name)
	}
	return fmt.Errorf("%w (%ssee %s --help)", err, hint, c.Command.HelpName)
}

// flagHint returns a hint at the flag that the user probably meant, or an empty string.
func flagHint(c *cli.Context, name string) string {
	flags := c.Command.Flags
	if c.Command.Name == c.App.Name { // the flag precedes the command
		flags = c.App.Flags
		if hasFlag(settingFlags(), name) {
			return fmt.Sprintf("it comes after the command: %s serve --%s …; ", c.App.Name, name)
		}
	}
	if nearest := conf.NearestName(name, flagNames(flags)); nearest != "" {
		return "did you mean --" + nearest + "? "
	}
	return ""
}

// boolFlagHint returns a hint at the syntax for the value of a boolean flag, if the first argument
// is such a value.
func boolFlagHint(c *cli.Context) string {
	value := c.Args().First()
	if _, err := strconv.ParseBool(value); err != nil {
		return ""
	}
	name := "NAME"
	for _, f := range c.Command.Flags {
		if b, is := f.(*cli.BoolFlag); is && c.IsSet(b.Name) {
			name = b.Name
		}
	}
	return fmt.Sprintf("; write --%s=%s", name, value)
}

func hasFlag(flags []cli.Flag, name string) bool {
	return slices.Contains(flagNames(flags), name)
}

// flagNames returns the long names of flags.
func flagNames(flags []cli.Flag) []string {
	var names []string
	for _, f := range flags {
		names = append(names, f.Names()[0])
	}
	return names
}

// unknownCommandError returns the error for an unknown command.
func unknownCommandError(c *cli.Context) error {
	name, hint := c.Args().First(), ""
	var commandNames []string
	for _, cmd := range c.App.VisibleCommands() {
		commandNames = append(commandNames, cmd.Name)
	}
	if nearest := conf.NearestName(name, commandNames); nearest != "" {
		hint = "did you mean " + nearest + "? "
	}
	return fmt.Errorf("unknown command %q (%ssee %s --help)", name, hint, c.App.Name)
}
