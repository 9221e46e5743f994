package process

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestParseProcStat(t *testing.T) {
	const tail = " S 1 2 3 4 5 6 7 8 9 10 150 25 13 14 15 16 17 18 19 20 3 22"
	for _, name := range []string{"redis-server", "a b) R 9", "((", ""} {
		stat, err := parseProcStat("12 (" + name + ")" + tail)
		if err != nil || stat.state != "S" || stat.cpu != 1750*time.Millisecond || stat.rss != 3*int64(os.Getpagesize()) {
			t.Errorf("%q: %+v, %v", name, stat, err)
		}
	}
	for _, line := range []string{"", "12 (x) S 1", "12 (x)" + strings.Replace(tail, "150", "x", 1)} {
		if stat, err := parseProcStat(line); err == nil {
			t.Errorf("%q: %+v; want an error", line, stat)
		}
	}
}
