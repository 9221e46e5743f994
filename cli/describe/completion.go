package describe

import (
	_ "embed"
	"fmt"
	"io"
	"regexp"
	"strings"
	"text/template"

	"github.com/urfave/cli/v2"
)

var (
	//go:embed completion.bash
	bashTemplate string
	//go:embed completion.zsh
	zshTemplate string
)

// WriteBash writes a completion script for bash. The script needs only bash, and never executes a
// word of the command line that it completes.
func WriteBash(w io.Writer, app *cli.App) error { return writeScript(w, app, bashTemplate) }

// WriteZsh writes a completion script for zsh, to be sourced or put into a folder of fpath as
// _redlock-proxy.
func WriteZsh(w io.Writer, app *cli.App) error { return writeScript(w, app, zshTemplate) }

// scriptData holds the values for the templates of completion scripts.
type scriptData struct {
	Name     string
	Flags    []flag
	Commands []command
}

// Function returns the name of the shell function.
func (p scriptData) Function() string {
	return "_" + regexp.MustCompile(`\W`).ReplaceAllString(p.Name, "_")
}

func writeScript(w io.Writer, app *cli.App, text string) error {
	functions := template.FuncMap{"names": allFlagNames, "values": valueFlagNames, "files": fileFlagNames, "zsh": zshFlags,
		"described": zshDescription}
	parsed, err := template.New("").Funcs(functions).Parse(text)
	if err != nil {
		return err
	}
	return parsed.Execute(w, scriptData{Name: app.Name, Flags: flags(withoutLibraryHelp(app.Flags)),
		Commands: commands(app)})
}

// allFlagNames returns the names of flags, separated by blanks.
func allFlagNames(flagList []flag) string {
	return joinFlagNames(flagList, func(flag) bool { return true })
}

// valueFlagNames returns the names of the flags that take a value other than a file.
func valueFlagNames(all []flag) string {
	return joinFlagNames(all, func(f flag) bool { return f.Value != "" && !f.IsFile() })
}

// fileFlagNames returns the names of the flags that take a file.
func fileFlagNames(all []flag) string { return joinFlagNames(all, flag.IsFile) }

func joinFlagNames(all []flag, include func(flag) bool) string {
	var names []string
	for _, f := range all {
		if include(f) {
			names = append(names, f.Names...)
		}
	}
	return strings.Join(names, " ")
}

// zshFlags returns flags in the syntax of zsh's _arguments, each in quotes.
func zshFlags(all []flag) string {
	var specs []string
	for _, f := range all {
		for _, name := range f.Names {
			specs = append(specs, quote(zshFlag(f, name)))
		}
	}
	return strings.Join(specs, " \\\n                ")
}

// zshFlag returns a flag under one of its names. Unless the flag is repeatable, it excludes its
// other names.
func zshFlag(f flag, name string) string {
	spec := fmt.Sprintf("(%s)", strings.Join(f.Names, " "))
	if f.IsList {
		spec = "*"
	}
	spec += name
	if f.Value != "" {
		spec += "="
	}
	spec += "[" + strings.NewReplacer(`\`, `\\`, `[`, `\[`, `]`, `\]`, `:`, `\:`).Replace(f.Usage) + "]"
	switch {
	case f.IsFile():
		spec += ":" + f.Value + ":_files"
	case f.Value != "":
		spec += ":" + f.Value + ": "
	}
	return spec
}

// zshDescription returns a command with its usage, in quotes, in the syntax of zsh's _describe.
func zshDescription(c command) string {
	return quote(c.Name + ":" + strings.ReplaceAll(c.Usage, `:`, `\:`))
}

// quote returns the text as one word of a shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
