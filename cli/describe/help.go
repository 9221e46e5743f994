package describe

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
)

// Width is the maximum width of a line of help, in columns. The library indents the description of
// the program by three more columns.
const Width = 97

// Help returns the help of a command: first its own flags, then the settings, if it takes them. If
// settingsCommand is not empty, Help refers to the command of that name instead of listing the
// settings.
func Help(program string, c *cli.Command, settings []cli.Flag, settingsCommand string) string {
	own, takesSettings := splitFlags(flags(withoutLibraryHelp(c.Flags)), flags(settings))
	var out strings.Builder
	usage := strings.TrimRight(fmt.Sprintf("%s %s [flags] %s", program, c.Name, c.ArgsUsage), " ")
	fmt.Fprintf(&out, "%s\n\nUsage: %s\n\nFlags:\n", Wrap(c.Usage, ""), usage)
	writeHelpFlags(&out, append(own, helpFlag))
	switch {
	case !takesSettings:
	case settingsCommand != "":
		text := fmt.Sprintf("It also takes all settings, as flags, environment variables or a file: "+
			"see '%s %s --help'.", program, settingsCommand)
		fmt.Fprintf(&out, "\n%s\n", Wrap(text, ""))
	default:
		out.WriteString("\nSettings, each of which is also an environment variable and a key of the YAML file:\n")
		writeHelpFlags(&out, withoutHelp(flags(settings)))
	}
	return out.String()
}

// writeHelpFlags lists flags, each with its usage below it.
func writeHelpFlags(out *strings.Builder, flagList []flag) {
	for _, f := range flagList {
		usage := f.Usage
		if f.Default != "" {
			usage += " (default: " + f.Default + ")"
		}
		fmt.Fprintf(out, "  %s\n%s\n", strings.TrimRight(strings.Join(f.Names, ", ")+" "+f.Value, " "),
			Wrap(usage, "        "))
	}
}

// Wrap breaks a text into lines of at most Width columns, each with the indent. A longer word stays
// whole.
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
