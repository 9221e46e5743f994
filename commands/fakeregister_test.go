package commands

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/quorum"

	"github.com/hashicorp/go-multierror"
)

// fakeRegister is five masters in a few lines, at which time stands still: they give
// each its vote in turn, and whatever lost is undone at once.
type fakeRegister struct {
	masters [5]map[quorum.Key]quorum.Entry
	down    [5]bool
	// before is called before each round with its number, from 1.
	before func(round int)
	// shows has every edit that did not win be one that may have been seen.
	shows bool
	// busy is how often somebody else still has the turn; turns are those that were not
	// ended.
	busy, turns int
	// rounds are what was asked: reads, and edits as they were sent.
	rounds []string
}

func newFakeRegister() *fakeRegister {
	f := &fakeRegister{}
	for i := range f.masters {
		f.masters[i] = map[quorum.Key]quorum.Entry{}
	}
	return f
}

var errDown = errors.New("connection refused")

func (f *fakeRegister) round(format string, args ...any) error {
	f.rounds = append(f.rounds, fmt.Sprintf(format, args...))
	if f.before != nil {
		f.before(len(f.rounds))
	}
	answered := 0
	causes := &multierror.Error{ErrorFormat: func([]error) string { return "connection refused" }}
	for i, down := range f.down {
		if !down {
			answered++
		} else {
			causes = multierror.Append(causes, &quorum.MasterError{Master: fmt.Sprint(i), Err: errDown})
		}
	}
	if answered < 3 {
		return &quorum.NoQuorumError{Masters: 5, Answered: answered, Causes: causes}
	}
	return nil
}

func (f *fakeRegister) up() (up []map[quorum.Key]quorum.Entry) {
	for i, m := range f.masters {
		if !f.down[i] {
			up = append(up, m)
		}
	}
	return up
}

func (f *fakeRegister) ReadAll(_ context.Context, keys []quorum.Key) ([]quorum.Holding, error) {
	if err := f.round("read %v", names(keys)); err != nil {
		return nil, err
	}
	all := make([]quorum.Holding, len(keys))
	for i, key := range keys {
		var said []quorum.Entry
		for _, m := range f.up() {
			said = append(said, m[key])
		}
		all[i] = counted(said)
	}
	return all, nil
}

// counted is what five masters hold of which some said so.
func counted(said []quorum.Entry) quorum.Holding {
	votes, left := map[string]int{}, map[string]time.Duration{}
	for _, e := range said {
		if e.Present {
			votes[e.Value]++
			left[e.Value] = e.Left
		}
	}
	most := ""
	for _, value := range slices.Sorted(maps.Keys(votes)) {
		if votes[value] > votes[most] {
			most = value
		}
	}
	present := 0
	for _, n := range votes {
		present += n
	}
	h := quorum.Holding{Value: most, Left: left[most], Held: votes[most] >= 3, Free: len(said)-present >= 3}
	h.Split = !h.Held && votes[most] > 0
	h.Unsure = !h.Held && !h.Free && votes[most]+5-len(said) >= 3
	h.Mixed = !h.Held && len(votes) > 1
	return h
}

func (f *fakeRegister) Apply(_ context.Context, edits []quorum.Edit) (quorum.Outcome, error) {
	if err := f.round("edit %s", described(edits)); err != nil {
		return quorum.Outcome{}, err
	}
	said := make([][]quorum.Entry, len(edits))
	yes, removes := 0, true
	var undos []func()
	for _, m := range f.up() {
		before, fits := maps.Clone(m), true
		for i, e := range edits {
			there := m[e.Key]
			said[i] = append(said[i], there)
			fits = fits && there.Present == e.Was.Present && there.Value == e.Was.Value
			removes = removes && !e.Now.Present
		}
		if !fits {
			continue
		}
		yes++
		for i, e := range edits {
			enter(m, e)
			if removes {
				said[i][len(said[i])-1] = quorum.Entry{}
			}
		}
		undos = append(undos, func() { clear(m); maps.Copy(m, before) })
	}
	if yes >= 3 {
		return quorum.Outcome{Applied: true, Validity: time.Second}, nil
	}
	found := make([]quorum.Holding, len(edits))
	for i := range edits {
		found[i] = counted(said[i])
	}
	for _, undo := range undos {
		if !removes {
			undo()
		}
	}
	var reach quorum.Reach
	if f.shows && !removes {
		reach = quorum.NewReach([]bool{true, true, true, false, false}, true)
	}
	return quorum.Outcome{Found: found, Removed: removes && yes > 0, Reach: reach}, nil
}

// Turn is everybody's: time stands still here.
func (f *fakeRegister) Turn(context.Context, quorum.Key) (end func(), ok bool) {
	if f.busy > 0 {
		f.busy--
		return func() {}, false
	}
	f.turns++
	return func() { f.turns-- }, true
}

func enter(m map[quorum.Key]quorum.Entry, e quorum.Edit) {
	switch {
	case !e.Now.Present:
		delete(m, e.Key)
	case e.KeepLeft:
		m[e.Key] = quorum.Entry{Present: true, Value: e.Now.Value, Left: m[e.Key].Left}
	default:
		m[e.Key] = e.Now
	}
}

// Lock and Unlock are those of a Locker over the same masters.
func (f *fakeRegister) Lock(ctx context.Context, req quorum.LockRequest) (time.Duration, error) {
	out, err := f.Apply(ctx, []quorum.Edit{{Key: req.Key, Now: quorum.Entry{Present: true, Value: req.Token, Left: req.TTL}}})
	if err == nil && !out.Applied {
		err = quorum.ErrHeld
	}
	return out.Validity, err
}

func (f *fakeRegister) Unlock(ctx context.Context, key quorum.Key, token string) error {
	out, err := f.Apply(ctx, []quorum.Edit{{Key: key, Was: quorum.Entry{Present: true, Value: token}}})
	if err == nil && !out.Applied {
		err = quorum.ErrNotHeld
	}
	return err
}

func (f *fakeRegister) Extend(context.Context, quorum.Key, string, time.Duration) (time.Duration, error) {
	panic("no command on a lock key uses it")
}

// put has masters hold a value; the time is in ms, or -1.
func (f *fakeRegister) put(key, value string, ms int, masters ...int) {
	left := time.Duration(ms) * time.Millisecond
	if ms < 0 {
		left = quorum.Endless
	}
	for _, i := range masters {
		f.masters[i][quorum.Key{Name: key}] = quorum.Entry{Present: true, Value: value, Left: left}
	}
}

// all has every master hold a value.
func (f *fakeRegister) all(key, value string, ms int) { f.put(key, value, ms, 0, 1, 2, 3, 4) }

// holds is what the masters hold under a key, one letter or word for each.
func (f *fakeRegister) holds(key string) string {
	var all []string
	for _, m := range f.masters {
		e := m[quorum.Key{Name: key}]
		switch {
		case !e.Present:
			all = append(all, ".")
		case e.Left < 0:
			all = append(all, e.Value)
		default:
			all = append(all, fmt.Sprintf("%s:%d", e.Value, e.Left.Milliseconds()))
		}
	}
	if slices.Equal(all, slices.Repeat(all[:1], 5)) {
		return all[0]
	}
	return strings.Join(all, " ")
}

func names(keys []quorum.Key) string {
	all := make([]string, len(keys))
	for i, k := range keys {
		all[i] = fmt.Sprintf("%d/%s", k.DB, k.Name)
	}
	return strings.Join(all, " ")
}

func described(edits []quorum.Edit) string {
	entry := func(e quorum.Entry, keep bool) string {
		switch {
		case !e.Present:
			return "."
		case keep:
			return e.Value + ":keep"
		case e.Left < 0:
			return e.Value
		default:
			return fmt.Sprintf("%s:%d", e.Value, e.Left.Milliseconds())
		}
	}
	all := make([]string, len(edits))
	for i, e := range edits {
		was := "."
		if e.Was.Present {
			was = e.Was.Value
		}
		all[i] = fmt.Sprintf("%d/%s %s→%s", e.Key.DB, e.Key.Name, was, entry(e.Now, e.KeepLeft))
	}
	return strings.Join(all, ", ")
}

// registerBench is a table over such masters, and a client.
type registerBench struct {
	*bench
	masters *fakeRegister
	aside   *fakeAside
	paused  int
	now     time.Time
}

// fakeAside writes down what it carries.
type fakeAside struct {
	carried []string
	err     error
}

func (f *fakeAside) Carry(ctx context.Context, db int, commands [][]string) error {
	for _, words := range commands {
		f.carried = append(f.carried, fmt.Sprintf("%d: %s", db, strings.Join(words, " ")))
	}
	return errors.Join(f.err, ctx.Err())
}

func newRegisterBench(t *testing.T, change ...func(*Options)) *registerBench {
	b := &registerBench{bench: &bench{T: t, client: newClient()}, masters: newFakeRegister(), aside: &fakeAside{}, now: time.UnixMilli(1_700_000_000_000)}
	opts := Options{
		Locks: b.masters, Register: b.masters, Aside: b.aside, MaxTTL: 24 * time.Hour, LockKeys: []string{"k*", "lock:*"},
		Random: func(bits []byte) { clear(bits) }, Now: func() time.Time { return b.now },
	}
	for _, f := range change {
		f(&opts)
	}
	b.table = NewTable(opts)
	b.table.pause = func(ctx context.Context, _ time.Duration) error {
		b.paused++
		b.now = b.now.Add(20 * time.Millisecond)
		return context.Cause(ctx)
	}
	return b
}

// run runs a command of lock keys, whatever they are called, and returns its reply
// as redis-cli would write it in one line.
func (b *registerBench) run(words ...string) string {
	b.Helper()
	args := wordBytes(words)
	cmd := b.table.locked[strings.ToLower(words[0])]
	if cmd == nil {
		b.Fatalf("%s is no command on lock keys", words[0])
	}
	at := len(b.out.Bytes)
	b.table.Run(b.Context(), cmd, b.client, args, &b.out)
	return oneLine(b.T, string(b.out.Bytes[at:]))
}

// does runs a command of words between blanks and fails unless this is its reply.
func (b *registerBench) does(line, want string) {
	b.Helper()
	if got := b.run(strings.Split(line, " ")...); got != want {
		b.Errorf("%s: %s, want %s", line, got, want)
	}
}

// asked fails unless these are the rounds since the last time.
func (b *registerBench) asked(want ...string) {
	b.Helper()
	if got := b.masters.rounds; !slices.Equal(got, want) {
		b.Errorf("the masters were asked\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
	b.masters.rounds = nil
}

// holding fails unless the masters hold this.
func (b *registerBench) holding(key, want string) {
	b.Helper()
	if got := b.masters.holds(key); got != want {
		b.Errorf("%s: %s, want %s", key, got, want)
	}
}

func oneLine(t *testing.T, raw string) string {
	t.Helper()
	replies := readReplies(t, raw)
	if len(replies) != 1 {
		t.Fatalf("%d replies: %q", len(replies), raw)
	}
	return replies[0].oneLine()
}

func (v value) oneLine() string {
	switch v.kind {
	case '_':
		return "(nil)"
	case ':':
		return v.text
	case '$':
		return fmt.Sprintf("%q", v.text)
	case '*':
		all := make([]string, len(v.kids))
		for i, kid := range v.kids {
			all[i] = kid.oneLine()
		}
		return "[" + strings.Join(all, " ") + "]"
	default:
		return v.text
	}
}

// textLogger writes to a Builder.
func textLogger(to *strings.Builder) *slog.Logger { return slog.New(slog.NewTextHandler(to, nil)) }
