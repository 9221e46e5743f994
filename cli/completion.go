package cli

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"redlock-proxy/cli/describe"
)

// manSection is that of commands and daemons for administrators.
const manSection = 8

// selfCommands describe what the command line is.
func selfCommands() []*cli.Command {
	completion := command("completion", "print the completion for a shell: source <(redlock-proxy completion bash)", nil, completionAction)
	completion.ArgsUsage, completion.Action = "bash|zsh", completionAction
	return []*cli.Command{completion, command("man", "print the page of the manual: redlock-proxy man | man -l -", nil, manAction)}
}

func completionAction(c *cli.Context) error {
	switch shell := c.Args().First(); {
	case c.Bool("version"):
		return versionAction(c)
	case c.Args().Len() > 1:
		return fmt.Errorf("unexpected argument %q", c.Args().Get(1))
	case shell == "bash":
		return describe.Bash(c.App.Writer, c.App)
	case shell == "zsh":
		return describe.Zsh(c.App.Writer, c.App)
	default:
		return fmt.Errorf("completion of which shell: bash or zsh? (not %q)", shell)
	}
}

func manAction(c *cli.Context) error {
	return describe.Man(c.App.Writer, c.App, describe.Page{
		Section: manSection, Settings: settingFlags(), Exits: exitMeanings(), See: []string{"redis-server(1)", "redis-cli(1)", "systemd.service(5)"},
	})
}
