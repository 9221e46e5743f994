package cli

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"redlock-proxy/cli/describe"
)

// manSection is the section of the manual for the commands of administrators.
const manSection = 8

// documentationCommands returns the commands that print documentation of the command line.
func documentationCommands() []*cli.Command {
	completion := newCommand("completion",
		"print the completion script of a shell: source <(redlock-proxy completion bash)", nil, completionAction)
	completion.ArgsUsage, completion.Action = "bash|zsh", completionAction
	man := newCommand("man", "print the manual page: redlock-proxy man | man -l -", nil, manAction)
	return []*cli.Command{completion, man}
}

func completionAction(c *cli.Context) error {
	switch shell := c.Args().First(); {
	case c.Bool("version"):
		return versionAction(c)
	case c.Args().Len() > 1:
		return fmt.Errorf("unexpected argument %q", c.Args().Get(1))
	case shell == "bash":
		return describe.WriteBash(c.App.Writer, c.App)
	case shell == "zsh":
		return describe.WriteZsh(c.App.Writer, c.App)
	default:
		return fmt.Errorf("unknown shell %q; use bash or zsh", shell)
	}
}

func manAction(c *cli.Context) error {
	return describe.WriteMan(c.App.Writer, c.App, describe.Page{
		Section: manSection, Settings: settingFlags(), ExitMeanings: exitMeanings(),
		SeeAlso: []string{"redis-server(1)", "redis-cli(1)", "systemd.service(5)"},
	})
}
