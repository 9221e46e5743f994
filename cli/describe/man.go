package describe

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"
)

// Page holds the content of the manual page in addition to the commands.
type Page struct {
	Section      int        // of the manual
	Settings     []cli.Flag // common to several commands, described once
	ExitMeanings []string   // meanings of the exit codes, from 0
	SeeAlso      []string   // other pages, such as redis-cli(1)
}

// WriteMan writes the manual page with roff's man macros.
func WriteMan(w io.Writer, app *cli.App, p Page) error {
	var out strings.Builder
	fmt.Fprintf(&out, ".TH %s %d \"\" \"%s %s\" \"\"\n.nh\n", strings.ToUpper(escapeRoff(app.Name)), p.Section,
		escapeRoff(app.Name), escapeRoff(app.Version))
	fmt.Fprintf(&out, ".SH NAME\n%s \\- %s\n", escapeRoff(app.Name), escapeRoff(app.Usage))
	fmt.Fprintf(&out, ".SH SYNOPSIS\n.B %s\n.I command\n.RI [ flags ]\n", escapeRoff(app.Name))
	fmt.Fprintf(&out, ".SH DESCRIPTION\n%s\n", roffLine(app.Description))
	settings := flags(p.Settings)
	out.WriteString(".SH COMMANDS\n")
	for _, c := range commands(app) {
		writeCommand(&out, c, settings)
	}
	out.WriteString(".SH SETTINGS\n")
	writeFlags(&out, settings)
	out.WriteString(".SH EXIT STATUS\n")
	for code, meaning := range p.ExitMeanings {
		fmt.Fprintf(&out, ".TP\n.B %d\n%s\n", code, roffLine(meaning))
	}
	out.WriteString(".SH SEE ALSO\n")
	for i, page := range p.SeeAlso {
		name, section, _ := strings.Cut(strings.TrimSuffix(page, ")"), "(")
		fmt.Fprintf(&out, ".BR %s (%s)%s\n", escapeRoff(name), escapeRoff(section), map[bool]string{true: ","}[i < len(p.SeeAlso)-1])
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// writeCommand writes a command with its own flags, without the settings.
func writeCommand(out *strings.Builder, c command, settings []flag) {
	fmt.Fprintf(out, ".SS \"%s\"\n%s.\n", escapeRoff(strings.TrimSpace(c.Name+" "+strings.Join(c.Words, "|"))), roffLine(c.Usage))
	own, takesSettings := splitFlags(c.Flags, settings)
	if takesSettings {
		out.WriteString("It takes the\n.BR settings\nbelow.\n")
	}
	writeFlags(out, own)
}

func writeFlags(out *strings.Builder, flagList []flag) {
	for _, f := range flagList {
		var forms []string
		for _, name := range f.Names {
			form := `\fB` + escapeRoff(name) + `\fR`
			if f.Value != "" {
				form += ` \fI` + escapeRoff(f.Value) + `\fR`
			}
			forms = append(forms, form)
		}
		usage := f.Usage
		if f.Default != "" {
			usage += " (default: " + f.Default + ")"
		}
		fmt.Fprintf(out, ".TP\n%s\n%s\n", strings.Join(forms, ", "), roffLine(usage))
	}
}

// roffLine escapes a line of text so that roff does not take it for a macro.
func roffLine(text string) string {
	text = escapeRoff(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		return `\&` + text
	}
	return text
}

// escapeRoff escapes the characters that have a meaning in roff.
func escapeRoff(text string) string {
	escapes := strings.NewReplacer(`\`, `\e`, `-`, `\-`, `"`, `\(dq`, `'`, `\(aq`, "\n", " ",
		"…", `\[u2026]`, "→", `\(->`)
	return escapes.Replace(text)
}
