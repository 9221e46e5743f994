//go:build integration

package schedules

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// history is the sequence of commands, through two proxies, by which a key got its value. D and E,
// two of the five masters, miss the missedCommands. A command runs through the first proxy, or, if
// > precedes it, through the second proxy. KEY stands for the key, CELL for the key of its cell.
type history struct {
	name              string
	key               string // contains CELL; empty: CELL alone
	earlierCommands   string // earlier commands, which reach all masters
	missedCommands    string // commands that D and E miss
	readCommand, want string // a command that reads the key, and its reply in the end
	absent            bool   // the key is absent at the end
	isShort           bool   // the key expires less than a minute after missedCommands
}

// histories returns histories of keys that have their own cells.
func histories() []history {
	keeps := func(name, before, missedCommands string) history {
		return history{name: name, earlierCommands: before, missedCommands: missedCommands, readCommand: "GET KEY", want: "v"}
	}
	const longPX = " PX " + longTTL
	return []history{
		keeps("a transaction", "", "WATCH KEY|MULTI|SET KEY v|EXEC"),
		keeps("a transaction on an existing key", "SET KEY old", "WATCH KEY|MULTI|SET KEY v|EXEC"),
		keeps("LOCK", "", "LOCK KEY v"+longPX),
		{name: "a LOCK for less than a minute", missedCommands: "LOCK KEY v PX 55000", readCommand: "GET KEY", want: "v", isShort: true},
		keeps("LOCK with a fence", "", "LOCK KEY v"+longPX+" FENCE"),
		keeps("SET NX", "", "SET KEY v NX"+longPX),
		keeps("SET", "", "SET KEY v"),
		keeps("GETSET", "", "GETSET KEY v"),
		keeps("GETSET of an existing key", "LOCK KEY old"+longPX, "GETSET KEY v"),
		keeps("EXTEND by the other", "", "LOCK KEY v PX 55000|>EXTEND KEY v"+longPX),
		{name: "HSET", missedCommands: "HSET KEY f v", readCommand: "HGET KEY f", want: "v"},
		{name: "HSET by both", missedCommands: "HSET KEY f v|>HSET KEY g w", readCommand: "HGETALL KEY", want: "[f v g w]"},

		keeps("FORCEUNLOCK by the other, LOCK", "", "LOCK KEY old"+longPX+"|>FORCEUNLOCK KEY|LOCK KEY v"+longPX),
		keeps("UNLOCK by the other, LOCK", "", "LOCK KEY old"+longPX+"|>UNLOCK KEY old|LOCK KEY v"+longPX),
		keeps("FORCEUNLOCK by the other of a lock on all masters, LOCK", "LOCK KEY old"+longPX, ">FORCEUNLOCK KEY|LOCK KEY v"+longPX),
		keeps("UNLOCK by the other, LOCK by the other", "", "LOCK KEY old"+longPX+"|>UNLOCK KEY old|>LOCK KEY v"+longPX),
		keeps("GETSET by both", "", "GETSET KEY old|>GETSET KEY v"),
		keeps("UNLOCK, LOCK", "LOCK KEY old"+longPX, "UNLOCK KEY old|LOCK KEY v"+longPX),

		{name: "UNLOCK", earlierCommands: "LOCK KEY v" + longPX, missedCommands: "UNLOCK KEY v", readCommand: "GET KEY", want: "nil", absent: true},
		{name: "UNLOCK by the other", earlierCommands: ">LOCK KEY v" + longPX, missedCommands: "UNLOCK KEY v", readCommand: "GET KEY", want: "nil",
			absent: true},
		{name: "FORCEUNLOCK", earlierCommands: ">LOCK KEY v" + longPX, missedCommands: "FORCEUNLOCK KEY", readCommand: "GET KEY", want: "nil",
			absent: true},
		{name: "GETSET, DEL by the other", missedCommands: "GETSET KEY v|>DEL KEY", readCommand: "GET KEY", want: "nil", absent: true},
	}
}

// taggedHistories returns histories of keys that share a cell with other keys of their tag.
func taggedHistories() []history {
	const long = " PX " + longTTL
	keeps := func(name, key, missedCommands string) history {
		return history{name: name, key: key, missedCommands: missedCommands, readCommand: "GET KEY", want: "v"}
	}
	return []history{
		keeps("a lock with a tag", "x:{CELL}", "LOCK KEY v"+long),
		keeps("a transaction on a key with a tag", "x:{CELL}", "WATCH KEY|MULTI|SET KEY v|EXEC"),
		keeps("a lock of the tag's own name", "", "LOCK KEY v"+long),
		keeps("a lock of the tag's own name, with another key", "", "LOCK KEY v"+long+"|SET x:{CELL} other"),
		keeps("a lock of the tag's own name that is released, with another key", "x:{CELL}",
			"LOCK CELL own"+long+"|SET KEY v|UNLOCK CELL own"),
		keeps("the same, set by the other", "x:{CELL}", "LOCK CELL own"+long+"|>SET KEY v|UNLOCK CELL own"),
		keeps("the same, released by the other", "x:{CELL}", "LOCK CELL own"+long+"|SET KEY v|>UNLOCK CELL own"),
		keeps("another key of the tag is removed by the other", "y:{CELL}", "SET x:{CELL} other|SET KEY v|>DEL x:{CELL}"),
	}
}

// checkedOperations lists the operations that must work on a key after one of its masters has lost
// it. Each operation has its own key.
var checkedOperations = []string{"read", "DEL", "LOCK", "FORCEUNLOCK"}

// TestRefill makes D and E absent while clients of two proxies write values. After their return,
// all five masters have the values, even if the proxy that wrote them died after its last reply. So
// all operations on the values work when another master has lost its data.
func TestRefill(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		args      []string
		histories []history
	}{
		{"cells of their own", nil, histories()},
		{"tags", []string{"--lock-keys", "*{lock:*", "--lock-tags", "*"}, taggedHistories()},
	} {
		for _, missing := range []absence{hangingMasters, cutOffMasters} {
			for _, writerDies := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, D and E %s, the writer dies: %v", c.name, missing.name, writerDies), func(t *testing.T) {
					t.Parallel()
					f := startFleet(t, 5)
					r := &refillRun{fleet: f, writer: f.startProxy(t, c.args...), otherProxy: f.startProxy(t, c.args...)}
					f.lockCatchUpProbe(t, connect(t, r.otherProxy))
					r.run(t, c.histories, missing, writerDies)
				})
			}
		}
	}
}

// absence is a way in which masters are absent. begin starts it, and returns a function that ends
// it.
type absence struct {
	name  string
	begin func(t *testing.T, f *fleet, masters ...int) (end func())
}

// hangingMasters stops masters. Commands that proxies send meanwhile arrive when the masters
// continue.
var hangingMasters = absence{"hang", func(t *testing.T, f *fleet, masters ...int) func() {
	for _, i := range masters {
		kit.Must(t, f.masters[i].Pause())
	}
	return func() {
		for _, i := range masters {
			kit.Must(t, f.masters[i].Continue())
		}
	}
}}

// cutOffMasters loses all commands that the proxies send to masters.
var cutOffMasters = absence{"are cut off", func(_ *testing.T, f *fleet, masters ...int) func() {
	var heldCommands holds
	for _, p := range f.proxies {
		heldCommands = append(heldCommands, p.cutOff(masters...)...)
	}
	return heldCommands.discard
}}

// refillRun runs histories through two proxies.
type refillRun struct {
	fleet              *fleet
	writer, otherProxy *proxy
}

func (r *refillRun) run(t *testing.T, histories []history, masterAbsence absence, killWriter bool) {
	t.Helper()
	clients := []*redistest.Client{connect(t, r.writer), connect(t, r.otherProxy)}
	cells := map[bool][]string{} // the map key is true if the key is absent at the end
	var shortCells []string
	forEach := func(do func(h history, cell, operation string)) {
		for _, h := range histories {
			for _, operation := range checkedOperations {
				do(h, fmt.Sprintf("lock:%s:%s", h.name, operation), operation)
			}
		}
	}
	forEach(func(h history, cell, _ string) {
		h.runCommands(t, clients, h.earlierCommands, cell)
		if h.isShort {
			shortCells = append(shortCells, cell)
		} else {
			cells[h.absent] = append(cells[h.absent], cell)
		}
	})
	missedAt := time.Now()
	shortMayEnd := func() bool { return time.Since(missedAt) > 50*time.Second }
	endAbsence := masterAbsence.begin(t, r.fleet, D, E)
	forEach(func(h history, cell, _ string) { h.runCommands(t, clients, h.missedCommands, cell) })
	if killWriter {
		kit.Must(t, r.writer.Kill())
	}
	endAbsence()
	r.otherProxy.wantVoting(t)
	kit.Eventually(t, func() error {
		present := cells[false]
		if !shortMayEnd() {
			present = slices.Concat(present, shortCells)
		}
		return errors.Join(r.fleet.checkPresence(t, A, true, present), r.fleet.checkPresence(t, A, false, cells[true]),
			kit.CheckSameCells(r.fleet.masters, slices.Concat(present, cells[true])...))
	})
	kit.Must(t, r.fleet.masters[A].Restart())
	r.fleet.wantCaughtUp(t, r.otherProxy, A)
	forEach(func(h history, cell, operation string) {
		if !h.isShort || !shortMayEnd() {
			h.wantOperation(t, clients[1], cell, operation)
		}
	})
}

// checkPresence returns nil if a master has values at all keys, or, if present is false, at none of
// them.
func (f *fleet) checkPresence(t *testing.T, master int, present bool, keys []string) error {
	t.Helper()
	var failures []error
	for i, c := range readKeys(t, f.masters[master], keys...) {
		if isPresent := c.value != nil; isPresent != present {
			failures = append(failures, fmt.Errorf("%s on %s: %v", keys[i], letters([]int{master}), c))
		}
	}
	return errors.Join(failures...)
}

// runCommands sends the commands of a history, and fails the test if a command fails. After a late
// reply it sends them all again.
func (h history) runCommands(t *testing.T, clients []*redistest.Client, commands, cell string) {
	t.Helper()
	for startedAt := time.Now(); h.sendUntilLate(t, clients, commands, cell); {
		if time.Since(startedAt) > kit.WaitLimit {
			t.Fatalf("%s: replies are late for %v", h.name, kit.WaitLimit)
		}
	}
}

// sendUntilLate sends commands up to the first late reply, and reports whether there was one.
func (h history) sendUntilLate(t *testing.T, clients []*redistest.Client, commands, cell string) bool {
	t.Helper()
	for command := range strings.SplitSeq(commands, "|") {
		command, isOther := strings.CutPrefix(command, ">")
		if command == "" {
			continue
		}
		client := clients[0]
		if isOther {
			client = clients[1]
		}
		reply := kit.Do(t, client, h.words(command, cell)...)
		if kit.IsLate(reply) {
			return true
		}
		if failure, failed := reply.(redistest.RespError); failed {
			t.Fatalf("%s: %s: %v", h.name, command, failure)
		}
	}
	return false
}

// words returns the words of a command of the history.
func (h history) words(command, cell string) []string {
	key := h.key
	if key == "" {
		key = "CELL"
	}
	words := strings.Fields(command)
	for i, word := range words {
		words[i] = strings.ReplaceAll(strings.ReplaceAll(word, "KEY", key), "CELL", cell)
	}
	return words
}

// wantOperation fails the test unless an operation on the key gets the same reply as without
// faults.
func (h history) wantOperation(t *testing.T, client *redistest.Client, cell, operation string) {
	t.Helper()
	want := func(reply, command string) {
		answer, wasLate := kit.DoInTime(t, client, h.words(command, cell)...)
		if got := kit.ReplyText(answer); got != reply && !(wasLate && reply == "1" && got == "0") {
			t.Errorf("%s: %s of %s: %s, want %s", h.name, command, cell, got, reply)
		}
	}
	removed := "1"
	if h.absent {
		removed = "0"
	}
	switch operation {
	case "read":
		want(h.want, h.readCommand)
	case "LOCK":
		if !h.absent {
			want("nil", "LOCK KEY rival PX 10000")
			return
		}
	default:
		want(removed, operation+" KEY")
	}
	if h.absent || operation == "DEL" || operation == "FORCEUNLOCK" {
		reply, wasLate := kit.DoInTime(t, client, h.words("LOCK KEY rival PX 10000", cell)...)
		if !isGrant(reply) && !(wasLate && reply == nil) {
			t.Errorf("%s: LOCK of %s after %s: %v", h.name, cell, operation, reply)
		}
	}
}
