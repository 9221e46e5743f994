package describe

import (
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

// unquote takes the name of the value, which stands in back quotes, out of a usage.
func unquote(usage string) (value, text string) {
	before, rest, quoted := strings.Cut(usage, "`")
	if value, after, ends := strings.Cut(rest, "`"); quoted && ends {
		return value, before + value + after
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
