package describe

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
)

// Width is how many columns a line of help takes at most. The help of the program indents its text
// by three more.
const Width = 97

// Help returns the help of a command of the program: its own flags, then the settings, if it takes
// them. If another command tells the settings, told names it; else it is empty.
func Help(program string, c *cli.Command, settings []cli.Flag, told string) string {
	its, takesSettings := split(flags(own(c.Flags)), flags(settings))
	var out strings.Builder
	usage := strings.TrimRight(fmt.Sprintf("%s %s [flags] %s", program, c.Name, c.ArgsUsage), " ")
	fmt.Fprintf(&out, "%s\n\nUsage: %s\n\nFlags:\n", Wrap(c.Usage, ""), usage)
	helpFlags(&out, append(its, helpFlag))
	switch {
	case !takesSettings:
	case told != "":
		text := fmt.Sprintf("It also takes all settings, as flags, environment variables or a file: see '%s %s --help'.", program, told)
		fmt.Fprintf(&out, "\n%s\n", Wrap(text, ""))
	default:
		out.WriteString("\nSettings, each of which is also an environment variable and a key of the YAML file:\n")
		helpFlags(&out, withoutHelp(flags(settings)))
	}
	return out.String()
}

// helpFlags lists flags, what each is for below it.
func helpFlags(out *strings.Builder, all []flag) {
	for _, f := range all {
		usage := f.Usage
		if f.Default != "" {
			usage += " (default: " + f.Default + ")"
		}
		fmt.Fprintf(out, "  %s\n%s\n", strings.TrimRight(strings.Join(f.Names, ", ")+" "+f.Value, " "), Wrap(usage, "        "))
	}
}

// Wrap breaks a text into lines of at most Width columns, each of which begins with indent. A word
// that is longer stays whole.
func Wrap(text, indent string) string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = indent + word
		case len([]rune(line))+1+len([]rune(word)) <= Width:
			line += " " + word
		default:
			lines, line = append(lines, line), indent+word
		}
	}
	return strings.Join(append(lines, line), "\n")
}
