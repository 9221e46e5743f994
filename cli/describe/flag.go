package describe

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// flag describes a flag for help texts.
type flag struct {
	Names   []string // with their dashes
	Value   string   // placeholder of the value, such as URL; empty if the flag takes no value
	Usage   string   // without the placeholder
	Default string
	IsList  bool
}

// helpFlag is the flag that the library adds to each command.
var helpFlag = flag{Names: []string{"--help", "-h"}, Usage: "show help"}

// flags describes the visible flags in their order, and the flag for help.
func flags(flagList []cli.Flag) []flag {
	var descriptions []flag
	for _, f := range flagList {
		if v, can := f.(cli.VisibleFlag); can && !v.IsVisible() {
			continue
		}
		if d, can := f.(cli.DocGenerationFlag); can {
			descriptions = append(descriptions, describeFlag(d))
		}
	}
	return append(descriptions, helpFlag)
}

// splitFlags returns the flags of a command without the flag for help and, if the command takes all
// settings, without the settings.
func splitFlags(all, settings []flag) (ownFlags []flag, takesSettings bool) {
	all = withoutHelp(all)
	ownFlags = slices.DeleteFunc(slices.Clone(all), func(f flag) bool {
		return slices.ContainsFunc(settings, func(s flag) bool { return s.Names[0] == f.Names[0] })
	})
	if settings = withoutHelp(settings); len(settings) == 0 || len(all)-len(ownFlags) < len(settings) {
		return all, false
	}
	return ownFlags, true
}

func withoutHelp(all []flag) []flag {
	return slices.DeleteFunc(slices.Clone(all), func(f flag) bool { return f.Names[0] == helpFlag.Names[0] })
}

func describeFlag(d cli.DocGenerationFlag) flag {
	var f flag
	for _, name := range d.Names() {
		f.Names = append(f.Names, withDashes(name))
	}
	value, usage := splitUsage(d.GetUsage())
	f.Usage = usage
	if slice, is := d.(cli.DocGenerationSliceFlag); is {
		f.IsList = slice.IsSliceFlag()
	}
	if d.TakesValue() {
		f.Value = value
	}
	if text := d.GetDefaultText(); d.TakesValue() || text == "true" {
		f.Default = text
	}
	return f
}

func withDashes(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// splitUsage splits a usage such as "`FILE`: where it is" into the placeholder and the text.
func splitUsage(usage string) (value, text string) {
	rest, quoted := strings.CutPrefix(usage, "`")
	if value, text, ends := strings.Cut(rest, "`: "); quoted && ends {
		return value, text
	}
	return "VALUE", usage
}

// IsFile reports whether the value is the name of a file.
func (f flag) IsFile() bool { return f.Value == "FILE" }

// command describes a command with its flags.
type command struct {
	Name, Usage string
	Words       []string // possible first arguments
	Flags       []flag
}

// commands describes the visible commands in their order.
func commands(app *cli.App) []command {
	var described []command
	for _, c := range app.Commands {
		if c.Hidden {
			continue
		}
		d := command{Name: c.Name, Usage: c.Usage, Flags: flags(withoutLibraryHelp(c.Flags))}
		if c.ArgsUsage != "" && !strings.HasPrefix(c.ArgsUsage, "[") {
			d.Words = strings.Split(c.ArgsUsage, "|")
		}
		described = append(described, d)
	}
	return described
}

// withoutLibraryHelp returns the flags without the help flag that the library adds at run time.
func withoutLibraryHelp(all []cli.Flag) (remaining []cli.Flag) {
	for _, f := range all {
		if f != cli.HelpFlag {
			remaining = append(remaining, f)
		}
	}
	return remaining
}
