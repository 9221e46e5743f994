package describe

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// flag is a flag as help shows it.
type flag struct {
	Names    []string // with their dashes
	Value    string   // what stands for the value, such as URL; empty where it takes none
	Usage    string   // without marks
	Default  string
	Repeated bool
}

// helpFlag is what the command line adds to each command.
var helpFlag = flag{Names: []string{"--help", "-h"}, Usage: "show help"}

// flags describes flags in their order, and the one for help.
func flags(all []cli.Flag) []flag {
	var described []flag
	for _, f := range all {
		if d, can := f.(cli.DocGenerationFlag); can {
			described = append(described, describeFlag(d))
		}
	}
	return append(described, helpFlag)
}

// split takes the settings out of the flags of a command, if it has all of them, and the flag for
// help.
func split(its, settings []flag) (alone []flag, takesSettings bool) {
	its = withoutHelp(its)
	alone = slices.DeleteFunc(slices.Clone(its), func(f flag) bool {
		return slices.ContainsFunc(settings, func(s flag) bool { return s.Names[0] == f.Names[0] })
	})
	if settings = withoutHelp(settings); len(settings) == 0 || len(its)-len(alone) < len(settings) {
		return its, false
	}
	return alone, true
}

func withoutHelp(all []flag) []flag {
	return slices.DeleteFunc(slices.Clone(all), func(f flag) bool { return f.Names[0] == helpFlag.Names[0] })
}

func describeFlag(d cli.DocGenerationFlag) flag {
	var f flag
	for _, name := range d.Names() {
		f.Names = append(f.Names, dashed(name))
	}
	value, usage := unquote(d.GetUsage())
	f.Usage = usage
	if slice, is := d.(cli.DocGenerationSliceFlag); is {
		f.Repeated = slice.IsSliceFlag()
	}
	if d.TakesValue() {
		f.Value = value
	}
	if text := d.GetDefaultText(); d.TakesValue() || text == "true" {
		f.Default = text
	}
	return f
}

func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// unquote splits a usage such as "`FILE`: where it is" into the name of the value and the text.
func unquote(usage string) (value, text string) {
	rest, quoted := strings.CutPrefix(usage, "`")
	if value, text, ends := strings.Cut(rest, "`: "); quoted && ends {
		return value, text
	}
	return "VALUE", usage
}

// IsFile reports whether the value is the name of a file.
func (f flag) IsFile() bool { return f.Value == "FILE" }

// command is a command with its flags.
type command struct {
	Name, Usage string
	Words       []string // one of which follows it
	Flags       []flag
}

// commands describes the visible commands in their order.
func commands(app *cli.App) []command {
	var described []command
	for _, c := range app.Commands {
		if c.Hidden {
			continue
		}
		d := command{Name: c.Name, Usage: c.Usage, Flags: flags(own(c.Flags))}
		if c.ArgsUsage != "" && !strings.HasPrefix(c.ArgsUsage, "[") {
			d.Words = strings.Split(c.ArgsUsage, "|")
		}
		described = append(described, d)
	}
	return described
}

// own leaves out the flag for help, which a command has once it has run.
func own(all []cli.Flag) (kept []cli.Flag) {
	for _, f := range all {
		if f != cli.HelpFlag {
			kept = append(kept, f)
		}
	}
	return kept
}
