package suite

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"
)

// commonFlags holds the values of all common flags.
type commonFlags struct {
	rounds      int
	window      time.Duration
	binary      string
	commandLine string
}

func sampleCommand() *cli.Command {
	flags := []cli.Flag{RoundsFlag(3), SecondsFlag(2), ProxyFlag(), &cli.BoolFlag{Name: "idle"}}
	return Command("sample", "", flags, func(*cli.Context) error { return nil })
}

func readCommonFlags(c *cli.Context) (commonFlags, error) {
	return commonFlags{rounds: Rounds(c), window: Window(c), binary: Binary(c), commandLine: CommandLine(c)}, nil
}

func TestSettings(t *testing.T) {
	got, err := ParseSettings(sampleCommand(), readCommonFlags)
	if want := (commonFlags{rounds: 3, window: 2 * time.Second, commandLine: "go run ./integration/bench sample"}); got != want ||
		err != nil {
		t.Errorf("without flags: %+v, %v; want %+v", got, err, want)
	}
	got, err = ParseSettings(sampleCommand(), readCommonFlags, "-rounds", "1", "-rounds", "5", "--seconds", "0.5", "-idle", "-proxy",
		"bin/proxy")
	want := commonFlags{rounds: 5, window: 500 * time.Millisecond, binary: "bin/proxy",
		commandLine: "go run ./integration/bench sample -idle -proxy bin/proxy -rounds 5 -seconds 0.5"}
	if got != want || err != nil {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

func TestWrongCommandLines(t *testing.T) {
	for line, want := range map[string]string{
		"bench":                  "say which benchmark: sample",
		"bench simple":           "say which benchmark: sample",
		"bench sample -x":        "flag provided but not defined: -x",
		"bench sample -rounds x": "invalid value",
		"bench sample extra":     `unexpected argument "extra"`,
	} {
		app := App(sampleCommand())
		app.Writer, app.ErrWriter = io.Discard, io.Discard
		if err := app.Run(strings.Fields(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", line, err, want)
		}
	}
}
