package suite

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"
)

// asked holds the values of all common flags.
type asked struct {
	rounds int
	window time.Duration
	binary string
	madeBy string
}

func benchmark() *cli.Command {
	flags := []cli.Flag{RoundsFlag(3), SecondsFlag(2), ProxyFlag(), &cli.BoolFlag{Name: "idle"}}
	return Command("sample", "", flags, func(*cli.Context) error { return nil })
}

func read(c *cli.Context) (asked, error) {
	return asked{rounds: Rounds(c), window: Window(c), binary: Binary(c), madeBy: MadeBy(c)}, nil
}

func TestSettings(t *testing.T) {
	got, err := Settings(benchmark(), read)
	if want := (asked{rounds: 3, window: 2 * time.Second, madeBy: "go run ./integration/bench sample"}); got != want ||
		err != nil {
		t.Errorf("without flags: %+v, %v; want %+v", got, err, want)
	}
	got, err = Settings(benchmark(), read, "-rounds", "1", "-rounds", "5", "--seconds", "0.5", "-idle", "-proxy",
		"bin/proxy")
	want := asked{rounds: 5, window: 500 * time.Millisecond, binary: "bin/proxy",
		madeBy: "go run ./integration/bench sample -idle -proxy bin/proxy -rounds 5 -seconds 0.5"}
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
		app := App(benchmark())
		app.Writer, app.ErrWriter = io.Discard, io.Discard
		if err := app.Run(strings.Fields(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", line, err, want)
		}
	}
}
