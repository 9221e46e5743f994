//go:build integration

package schedules

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// history is the sequence of commands, through two proxies, by which a key got its value. D and E,
// two of the five masters, miss the commands in missed. A command runs through the first proxy, or,
// if > precedes it, through the second one. KEY stands for the key, CELL for the key of its cell.
type history struct {
	name       string
	key        string // contains CELL; empty: CELL alone
	all        string // earlier commands, which reach all masters
	missed     string // commands that D and E miss
	read, want string // a command, and its reply from then on
	absent     bool   // the key is absent at the end
}

// histories returns histories of keys that have their own cells.
func histories() []history {
	held := func(name, all, missed string) history {
		return history{name: name, all: all, missed: missed, read: "GET KEY", want: "v"}
	}
	const long = " PX " + longTime
	return []history{
		held("a transaction", "", "WATCH KEY|MULTI|SET KEY v|EXEC"),
		held("a transaction on what there is", "SET KEY old", "WATCH KEY|MULTI|SET KEY v|EXEC"),
		held("LOCK", "", "LOCK KEY v"+long),
		held("a LOCK for less than a minute", "", "LOCK KEY v PX 55000"),
		held("LOCK with a fence", "", "LOCK KEY v"+long+" FENCE"),
		held("SET NX", "", "SET KEY v NX"+long),
		held("SET", "", "SET KEY v"),
		held("GETSET", "", "GETSET KEY v"),
		held("GETSET of what there is", "LOCK KEY old"+long, "GETSET KEY v"),
		held("EXTEND by the other", "", "LOCK KEY v PX 55000|>EXTEND KEY v"+long),
		{name: "HSET", missed: "HSET KEY f v", read: "HGET KEY f", want: "v"},
		{name: "HSET by both", missed: "HSET KEY f v|>HSET KEY g w", read: "HGETALL KEY", want: "[f v g w]"},

		held("FORCEUNLOCK by the other, LOCK", "", "LOCK KEY old"+long+"|>FORCEUNLOCK KEY|LOCK KEY v"+long),
		held("UNLOCK by the other, LOCK", "", "LOCK KEY old"+long+"|>UNLOCK KEY old|LOCK KEY v"+long),
		held("FORCEUNLOCK by the other of what all hold, LOCK", "LOCK KEY old"+long, ">FORCEUNLOCK KEY|LOCK KEY v"+long),
		held("UNLOCK by the other, LOCK by the other", "", "LOCK KEY old"+long+"|>UNLOCK KEY old|>LOCK KEY v"+long),
		held("GETSET by both", "", "GETSET KEY old|>GETSET KEY v"),
		held("UNLOCK, LOCK", "LOCK KEY old"+long, "UNLOCK KEY old|LOCK KEY v"+long),

		{name: "UNLOCK", all: "LOCK KEY v" + long, missed: "UNLOCK KEY v", read: "GET KEY", want: "nil", absent: true},
		{name: "UNLOCK by the other", all: ">LOCK KEY v" + long, missed: "UNLOCK KEY v", read: "GET KEY", want: "nil",
			absent: true},
		{name: "FORCEUNLOCK", all: ">LOCK KEY v" + long, missed: "FORCEUNLOCK KEY", read: "GET KEY", want: "nil",
			absent: true},
		{name: "GETSET, DEL by the other", missed: "GETSET KEY v|>DEL KEY", read: "GET KEY", want: "nil", absent: true},
	}
}

// taggedHistories returns histories of keys that share a cell with other keys of their tag.
func taggedHistories() []history {
	const long = " PX " + longTime
	held := func(name, key, missed string) history {
		return history{name: name, key: key, missed: missed, read: "GET KEY", want: "v"}
	}
	return []history{
		held("a lock with a tag", "x:{CELL}", "LOCK KEY v"+long),
		held("a transaction on a key with a tag", "x:{CELL}", "WATCH KEY|MULTI|SET KEY v|EXEC"),
		held("a lock of the tag's own name", "", "LOCK KEY v"+long),
		held("a lock of the tag's own name, beside another", "", "LOCK KEY v"+long+"|SET x:{CELL} other"),
		held("a lock of the tag's own name that is released beside another", "x:{CELL}",
			"LOCK CELL own"+long+"|SET KEY v|UNLOCK CELL own"),
		held("the same, put there by the other", "x:{CELL}", "LOCK CELL own"+long+"|>SET KEY v|UNLOCK CELL own"),
		held("the same, released by the other", "x:{CELL}", "LOCK CELL own"+long+"|SET KEY v|>UNLOCK CELL own"),
		held("a tag's last but one is removed by the other", "y:{CELL}", "SET x:{CELL} other|SET KEY v|>DEL x:{CELL}"),
	}
}

// uses lists the operations that must work on a key after one of its masters has lost it. Each
// operation has its own key.
var uses = []string{"read", "DEL", "LOCK", "FORCEUNLOCK"}

// TestRefill: D and E are absent while clients of two proxies write values, and return. Then all
// five masters have the values, even if the proxy that wrote them died after its last reply. So all
// operations on them work when another master has lost its data.
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
		for _, away := range []absence{hang, cut} {
			for _, dies := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, D and E %s, the writer dies: %v", c.name, away.name, dies), func(t *testing.T) {
					t.Parallel()
					f := startFleet(t, 5)
					r := &refill{fleet: f, writer: f.proxy(t, c.args...), other: f.proxy(t, c.args...)}
					f.holdSentinel(t, connect(t, r.other))
					r.run(t, c.histories, away, dies)
				})
			}
		}
	}
}

// absence is a way in which masters are absent; end ends it.
type absence struct {
	name  string
	begin func(t *testing.T, f *fleet, masters ...int) (end func())
}

// hang stops masters. Commands that proxies have sent to them arrive when they continue.
var hang = absence{"hang", func(t *testing.T, f *fleet, masters ...int) func() {
	for _, i := range masters {
		kit.Must(t, f.masters[i].Pause())
	}
	return func() {
		for _, i := range masters {
			kit.Must(t, f.masters[i].Continue())
		}
	}
}}

// cut loses all messages to masters.
var cut = absence{"are cut off", func(_ *testing.T, f *fleet, masters ...int) func() {
	var all holds
	for _, p := range f.proxies {
		all = append(all, p.cutOff(masters...)...)
	}
	return all.discard
}}

// refill runs histories through two proxies.
type refill struct {
	fleet         *fleet
	writer, other *proxy
}

func (r *refill) run(t *testing.T, all []history, away absence, dies bool) {
	t.Helper()
	clients := []*redistest.Client{connect(t, r.writer), connect(t, r.other)}
	cells := map[bool][]string{} // by whether the key is absent at the end
	each := func(do func(h history, cell, use string)) {
		for _, h := range all {
			for _, use := range uses {
				do(h, fmt.Sprintf("lock:%s:%s", h.name, use), use)
			}
		}
	}
	each(func(h history, cell, _ string) {
		h.send(t, clients, h.all, cell)
		cells[h.absent] = append(cells[h.absent], cell)
	})
	back := away.begin(t, r.fleet, D, E)
	each(func(h history, cell, _ string) { h.send(t, clients, h.missed, cell) })
	if dies {
		kit.Must(t, r.writer.Kill())
	}
	back()
	r.other.wantVoting(t)
	kit.NoError(t, eventually(func() error {
		return errors.Join(r.fleet.hold(t, A, true, cells[false]), r.fleet.hold(t, A, false, cells[true]),
			kit.Agree(r.fleet.masters, slices.Concat(cells[false], cells[true])...))
	}))
	kit.Must(t, r.fleet.masters[A].Restart())
	r.fleet.wantCaughtUp(t, r.other, A)
	each(func(h history, cell, use string) { h.use(t, clients[1], cell, use) })
}

// hold returns nil if a master has values at all keys, or, if something is false, at none of them.
func (f *fleet) hold(t *testing.T, master int, something bool, keys []string) error {
	t.Helper()
	var wrong []error
	for i, c := range look(t, f.masters[master], keys...) {
		if held := c.value != nil; held != something {
			wrong = append(wrong, fmt.Errorf("%s on %s: %v", keys[i], names([]int{master}), c))
		}
	}
	return errors.Join(wrong...)
}

// send sends the commands of a history, and fails the test if one fails.
func (h history) send(t *testing.T, clients []*redistest.Client, commands, cell string) {
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
		if failure, failed := h.do(t, client, command, cell).(redistest.RespError); failed {
			t.Fatalf("%s: %s: %v", h.name, command, failure)
		}
	}
}

// do sends one command of the history.
func (h history) do(t *testing.T, client *redistest.Client, command, cell string) any {
	t.Helper()
	key := h.key
	if key == "" {
		key = "CELL"
	}
	words := strings.Fields(command)
	for i, word := range words {
		words[i] = strings.ReplaceAll(strings.ReplaceAll(word, "KEY", key), "CELL", cell)
	}
	return kit.Do(t, client, words...)
}

// use fails the test unless an operation on the key gets the same reply as without faults.
func (h history) use(t *testing.T, client *redistest.Client, cell, use string) {
	t.Helper()
	want := func(reply, command string) {
		if got := kit.Text(h.do(t, client, command, cell)); got != reply {
			t.Errorf("%s: %s of %s: %s, want %s", h.name, command, cell, got, reply)
		}
	}
	removed := "1"
	if h.absent {
		removed = "0"
	}
	switch use {
	case "read":
		want(h.want, h.read)
	case "LOCK":
		if !h.absent {
			want("nil", "LOCK KEY rival PX 10000")
			return
		}
	default:
		want(removed, use+" KEY")
	}
	if h.absent || use == "DEL" || use == "FORCEUNLOCK" {
		if reply := h.do(t, client, "LOCK KEY rival PX 10000", cell); !isGrant(reply) {
			t.Errorf("%s: LOCK of %s after %s: %v", h.name, cell, use, reply)
		}
	}
}
