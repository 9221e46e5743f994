//go:build integration

package clients

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// recipe is a program of docs/recipes.md, and the two proxies that it uses.
type recipe struct {
	example // its name is the heading of the section
	proxies [2]*harness.Proxy
	words   []string // the command that runs the program
}

var programPattern = regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```$")

// readRecipes returns the programs on the page.
func readRecipes(t *testing.T) (list []example) {
	t.Helper()
	page, err := os.ReadFile("../../docs/recipes.md")
	kit.Must(t, err)
	for _, section := range strings.Split(string(page), "\n## ")[1:] {
		heading, body, _ := strings.Cut(section, "\n")
		for _, m := range programPattern.FindAllStringSubmatch(body, -1) {
			list = append(list, example{name: heading, language: m[1], text: m[2]})
		}
	}
	return list
}

// TestRecipes runs each program of docs/recipes.md, and checks what its recipe promises.
func TestRecipes(t *testing.T) {
	checks := map[string]func(*testing.T, *recipe){
		"Leader election": checkLeader, "A cron job that runs at most once": checkRunsOnce,
		"A program for both": checkHolders, "A fence in SQL": checkLateWrite,
	}
	upstream, masters := kit.StartRedis(t), redistest.URLs(kit.StartMasters(t))
	for _, e := range readRecipes(t) {
		t.Run(fmt.Sprintf("%s in %s", e.name, e.language), func(t *testing.T) {
			check := checks[e.name]
			if check == nil {
				t.Fatal("no check of this recipe")
			}
			r := &recipe{example: e}
			var ports []string
			for i, port := range []string{"6380", "6381"} {
				r.proxies[i] = kit.StartProxy(t, masters, kit.LockKeyArgs(upstream)...)
				_, own, err := net.SplitHostPort(r.proxies[i].Addr())
				kit.Must(t, err)
				ports = append(ports, port, own)
			}
			r.text = strings.NewReplacer(ports...).Replace(r.text)
			r.words = r.command(t)
			check(t, r)
		})
	}
}

// start starts the program with arguments.
func (r *recipe) start(t *testing.T, args ...string) *driver {
	t.Helper()
	cmd := exec.Command(r.words[0], append(r.words[1:len(r.words):len(r.words)], args...)...)
	cmd.Dir = t.TempDir()
	return startProgram(t, strings.Join(args, " "), cmd)
}

// wantLines checks the next lines of a program.
func (d *driver) wantLines(t *testing.T, lines ...string) {
	t.Helper()
	for _, want := range lines {
		if got, err := d.awaitReply(); err != nil || got != want {
			t.Fatalf("%s: %q, %v, want %q", d.name, got, err, want)
		}
	}
}

// wantLeader fails the test unless the program prints that it leads. It returns the fence.
func (d *driver) wantLeader(t *testing.T) int64 {
	t.Helper()
	line, err := d.awaitReply()
	kit.Must(t, err)
	fence, err := strconv.ParseInt(strings.TrimPrefix(line, d.name+" leads, fence "), 10, 64)
	if err != nil || fence <= 0 {
		t.Fatalf("%s: %q", d.name, line)
	}
	return fence
}

// wantEnd fails the test unless the program ends without a further line, and prints this error.
func (d *driver) wantEnd(t *testing.T, message string) {
	t.Helper()
	if line, err := d.awaitReply(); err == nil || !strings.Contains(err.Error(), message) {
		t.Fatalf("%s: %q, %v, want an end with %q", d.name, line, err, message)
	}
}

// checkLeader checks that a process leads until it resigns, although the proxy that it uses is
// killed. Then the next process leads with a higher fence.
func checkLeader(t *testing.T, r *recipe) {
	first := r.start(t, "first")
	fence := first.wantLeader(t)
	second := r.start(t, "second")
	kit.WantBlocked(t, r.proxies[0], 1)
	observer := kit.Connect(t, r.proxies[1])
	kit.Want(t, observer, "first", "GET", "lock:leader")
	kit.Must(t, r.proxies[0].Kill())
	const twoTTLs = 6 * time.Second
	for end := time.Now().Add(twoTTLs); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		kit.Want(t, observer, "first", "GET", "lock:leader")
	}
	kit.Must(t, first.process.Signal(syscall.SIGTERM))
	first.wantLines(t, "first resigned")
	if next := second.wantLeader(t); next <= fence {
		t.Errorf("the second leader has fence %d, which is not above %d", next, fence)
	}
	kit.Want(t, observer, "second", "GET", "lock:leader")
	kit.Must(t, second.process.Signal(syscall.SIGTERM))
	second.wantLines(t, "second resigned")
	kit.Want(t, observer, nil, "GET", "lock:leader")
}

// checkRunsOnce checks that only one program runs for a date, even if a proxy fails.
func checkRunsOnce(t *testing.T, r *recipe) {
	date := "report:" + r.language
	r.start(t, date).wantLines(t, "runs "+date)
	r.start(t, date).wantEnd(t, "another machine runs "+date)
	kit.Must(t, r.proxies[0].Kill())
	r.start(t, date).wantEnd(t, "another machine runs "+date)
	r.start(t, date+"-next").wantLines(t, "runs "+date+"-next")
}

// checkHolders checks that a program waits for one of two slots, shares a lock with a reader, and
// waits for an exclusive lock until the reader releases the lock.
func checkHolders(t *testing.T, r *recipe) {
	other := kit.Connect(t, r.proxies[1])
	for _, token := range []string{"worker-1", "worker-2"} {
		kit.WantGrant(t, other, "LOCK", "lock:workers", token, "PX", "60000", "SLOTS", "2")
	}
	worker := r.start(t, "lock:workers", "SLOTS", "2")
	kit.WantBlocked(t, r.proxies[0], 1)
	kit.Want(t, other, int64(1), "UNLOCK", "lock:workers", "worker-1")
	worker.wantLines(t, "works", "released: 1")
	kit.Want(t, other, int64(1), "UNLOCK", "lock:workers", "worker-2")

	kit.WantGrant(t, other, "LOCK", "lock:report", "reader", "PX", "60000", "SHARED")
	r.start(t, "lock:report", "SHARED").wantLines(t, "works", "released: 1")
	writer := r.start(t, "lock:report")
	kit.WantBlocked(t, r.proxies[0], 1)
	kit.Want(t, other, int64(1), "UNLOCK", "lock:report", "reader")
	writer.wantLines(t, "works", "released: 1")
}

// checkLateWrite checks that the row refuses the write of the earlier client.
func checkLateWrite(t *testing.T, r *recipe) {
	r.start(t).wantLines(t, "the second client writes: True", "the first client writes, too late: False")
}
