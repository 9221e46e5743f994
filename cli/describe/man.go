package describe

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"
)

// Page is the content of the manual page in addition to the commands.
type Page struct {
	Section  int        // of the manual
	Settings []cli.Flag // common to several commands, described once
	Exits    []string   // meanings of the exit codes, from 0
	See      []string   // other pages, such as redis-cli(1)
}

// Man writes the manual page with roff's man macros.
func Man(w io.Writer, app *cli.App, p Page) error {
	var out strings.Builder
	fmt.Fprintf(&out, ".TH %s %d \"\" \"%s %s\" \"\"\n.nh\n", strings.ToUpper(roff(app.Name)), p.Section,
		roff(app.Name), roff(app.Version))
	fmt.Fprintf(&out, ".SH NAME\n%s \\- %s\n", roff(app.Name), roff(app.Usage))
	fmt.Fprintf(&out, ".SH SYNOPSIS\n.B %s\n.I command\n.RI [ flags ]\n", roff(app.Name))
	fmt.Fprintf(&out, ".SH DESCRIPTION\n%s\n", line(app.Description))
	settings := flags(p.Settings)
	out.WriteString(".SH COMMANDS\n")
	for _, c := range commands(app) {
		writeCommand(&out, c, settings)
	}
	out.WriteString(".SH SETTINGS\n")
	writeFlags(&out, settings)
	out.WriteString(".SH EXIT STATUS\n")
	for code, meaning := range p.Exits {
		fmt.Fprintf(&out, ".TP\n.B %d\n%s\n", code, line(meaning))
	}
	out.WriteString(".SH SEE ALSO\n")
	for i, page := range p.See {
		name, section, _ := strings.Cut(strings.TrimSuffix(page, ")"), "(")
		fmt.Fprintf(&out, ".BR %s (%s)%s\n", roff(name), roff(section), map[bool]string{true: ","}[i < len(p.See)-1])
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// writeCommand writes a command with its own flags, without the settings.
func writeCommand(out *strings.Builder, c command, settings []flag) {
	fmt.Fprintf(out, ".SS \"%s\"\n%s.\n", roff(strings.TrimSpace(c.Name+" "+strings.Join(c.Words, "|"))), line(c.Usage))
	own, takesSettings := split(c.Flags, settings)
	if takesSettings {
		out.WriteString("It takes the\n.BR settings\nbelow.\n")
	}
	writeFlags(out, own)
}

func writeFlags(out *strings.Builder, all []flag) {
	for _, f := range all {
		var forms []string
		for _, name := range f.Names {
			form := `\fB` + roff(name) + `\fR`
			if f.Value != "" {
				form += ` \fI` + roff(f.Value) + `\fR`
			}
			forms = append(forms, form)
		}
		usage := f.Usage
		if f.Default != "" {
			usage += " (default: " + f.Default + ")"
		}
		fmt.Fprintf(out, ".TP\n%s\n%s\n", strings.Join(forms, ", "), line(usage))
	}
}

// line escapes a line of text so that roff does not take it for a macro.
func line(text string) string {
	text = roff(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		return `\&` + text
	}
	return text
}

// roff escapes the characters that have a meaning in roff.
func roff(text string) string {
	escapes := strings.NewReplacer(`\`, `\e`, `-`, `\-`, `"`, `\(dq`, `'`, `\(aq`, "\n", " ",
		"…", `\[u2026]`, "→", `\(->`)
	return escapes.Replace(text)
}
