package move

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/commands/lockkeys/keyspace/contents"
	"redlock-proxy/internal/redisinfo"
	"redlock-proxy/quorum/place"
)

// atUpstream is the locks at the upstream, over one connection.
type atUpstream struct {
	*Mover
	conn Connection
	// fieldsEnd are the databases with hashes that have fields with an end of their own.
	fieldsEnd map[int]bool
	clock     clock
	room      int64
}

const (
	// scanned is the COUNT of SCAN.
	scanned = 1000
	// readBytes is how many bytes of values are read at once, as far as that is known before.
	readBytes = 8 << 20
	// tried is of how many locks at once it is tried whether they can be written.
	tried = 100
	// nobody is the number of no connection.
	nobody = "4611686018427387904"
	// elementBytes is what an element of a collection is counted as.
	elementBytes = 64
)

// asked is what commands are replied, none of them with an error.
func asked(ctx context.Context, conn Connection, commands ...[]string) ([]any, error) {
	if len(commands) == 0 {
		return nil, nil
	}
	replies, err := conn.Ask(ctx, commands...)
	if err != nil {
		return nil, fmt.Errorf("the connection to the upstream is lost: %w", err)
	}
	for i, reply := range replies {
		if refused := refusal(reply); refused != nil {
			return nil, fmt.Errorf("%s at the upstream: %w", commands[i][0], refused)
		}
	}
	return replies, nil
}

// refusal is the error that a reply is, or, of an EXEC, has among others; nil: none.
func refusal(reply any) error {
	if refused, is := reply.(error); is {
		return refused
	}
	elems, _ := reply.([]any)
	for _, elem := range elems {
		if refused, is := elem.(error); is {
			return refused
		}
	}
	return nil
}

// checkUpstream finds out whether locks can be moved from there, or to there, and what this
// connection is called there.
func (r *run) checkUpstream(ctx context.Context) error {
	replies, err := asked(ctx, r.conn, []string{"INFO"}, []string{"CLIENT", "ID"}, []string{"CLIENT", "LIST"},
		[]string{"CLIENT", "KILL", "ID", nobody}) // whether that may be done
	if err != nil {
		return err
	}
	text, _ := replies[0].(string)
	info := redisinfo.Parse(text)
	id, _ := replies[1].(int64)
	r.own, r.server, r.room = strconv.FormatInt(id, 10), info["run_id"], info.Room()
	switch mode := cmp.Or(info["redis_mode"], info["server_mode"]); {
	case info["role"] != "master":
		return fmt.Errorf("the upstream is no master, but %q", info["role"])
	case mode == "cluster" || mode == "sentinel":
		return fmt.Errorf("the upstream is a %s", mode)
	case info["loading"] == "1":
		return errors.New("the upstream is loading its data")
	case id == 0:
		return errors.New("the upstream does not return the number of a connection (CLIENT ID)")
	}
	_, err = asked(ctx, r.conn, []string{"MULTI"}, []string{"HSETNX", place.RecordKey, "", ""}, []string{"DISCARD"}) // whether the record may be written
	return err
}

// databases are those that are not empty, in their order.
func (s *atUpstream) databases(ctx context.Context) ([]int, error) {
	replies, err := asked(ctx, s.conn, []string{"INFO", "keyspace"})
	if err != nil {
		return nil, err
	}
	text, _ := replies[0].(string)
	info := redisinfo.Parse(text)
	s.fieldsEnd = map[int]bool{}
	all := info.Databases()
	for _, db := range all {
		for count := range strings.SplitSeq(info["db"+strconv.Itoa(db)], ",") {
			what, n, _ := strings.Cut(count, "=")
			if (what == "subexpiry" || what == "keys_with_volatile_items") && n != "0" { // as Redis and Valkey call it
				s.fieldsEnd[db] = true
			}
		}
	}
	return all, nil
}

func (s *atUpstream) list(ctx context.Context) (all []name, err error) {
	if s.clock, err = readClock(ctx, s.conn); err != nil {
		return nil, err
	}
	all, _, err = s.scan(ctx, math.MaxInt)
	return all, err
}

// scan finds the lock keys in so much of the upstream's keyspace; more is set where there is more
// of it.
func (s *atUpstream) scan(ctx context.Context, most int) (all []name, more bool, err error) {
	databases, err := s.databases(ctx)
	if err != nil {
		return nil, false, err
	}
	for _, db := range databases {
		found := map[string]bool{}
		for cursor, first := "0", true; first || cursor != "0"; first = false {
			if most <= 0 {
				return all, true, nil
			}
			most -= scanned
			replies, err := s.in(ctx, db, append([]string{"SCAN", cursor, "COUNT", strconv.Itoa(scanned)}, s.match()...))
			if err != nil {
				return nil, false, err
			}
			page, _ := replies[0].([]any)
			if len(page) != 2 {
				return nil, false, errors.New("SCAN at the upstream: an unknown reply")
			}
			cursor, _ = page[0].(string)
			for _, key := range texts(page[1]) {
				if !found[key] && key != place.RecordKey && s.lockKeys.Match([]byte(key)) {
					found[key] = true
					all = append(all, name{db, key})
				}
			}
		}
	}
	return all, false, nil
}

// match has SCAN leave out keys that begin otherwise than all lock keys. What is a lock key is not
// left to the server.
func (s *atUpstream) match() []string {
	if common := commonPrefix(s.opts.LockKeys); common != "" {
		return []string{"MATCH", common + "*"}
	}
	return nil
}

// commonPrefix is what all keys that match one of some globs begin with.
func commonPrefix(globs []string) string {
	common := ""
	for i, glob := range globs {
		if special := strings.IndexAny(glob, `*?[\`); special >= 0 {
			glob = glob[:special]
		}
		if i == 0 {
			common = glob
		}
		for !strings.HasPrefix(glob, common) {
			common = common[:len(common)-1]
		}
	}
	return common
}

// in asks commands in a database.
func (s *atUpstream) in(ctx context.Context, db int, commands ...[]string) ([]any, error) {
	replies, err := asked(ctx, s.conn, append([][]string{{"SELECT", strconv.Itoa(db)}}, commands...)...)
	if err != nil {
		return nil, err
	}
	return replies[1:], nil
}

// UnfitError says that some lock keys hold what the masters cannot.
type UnfitError struct{ Keys []string }

// Error names them, and what they hold.
func (e *UnfitError) Error() string {
	return "lock keys at the upstream hold what lock keys on the masters cannot: " + some(e.Keys)
}

func (e *UnfitError) add(n name, what string) {
	e.Keys = append(e.Keys, fmt.Sprintf("'%s' (database %d): %s", syntax.Shown(n.key), n.db, what))
}

func (e *UnfitError) orNil() error {
	if len(e.Keys) == 0 {
		return nil
	}
	return e
}

// sized is a key with its type and about how large it is.
type sized struct {
	name
	kind  string
	bytes int
}

func (s *atUpstream) read(ctx context.Context, names []name) ([]lock, error) {
	known, err := s.measure(ctx, names)
	if err != nil {
		return nil, err
	}
	var all []lock
	for len(known) > 0 {
		n, size := 0, 0
		for n < len(known) && (n == 0 || size+known[n].bytes <= readBytes) {
			size += known[n].bytes
			n++
		}
		locks, err := s.values(ctx, known[:n])
		if err != nil {
			return nil, err
		}
		all, known = append(all, locks...), known[n:]
	}
	return all, nil
}

// measure finds out what is under some names before it is read.
func (s *atUpstream) measure(ctx context.Context, names []name) ([]sized, error) {
	var all []sized
	unfit := &UnfitError{}
	types, err := s.in(ctx, names[0].db, commandOf(names, func(n name) []string { return []string{"TYPE", n.key} })...)
	if err != nil {
		return nil, err
	}
	for i, n := range names {
		switch kind, _ := types[i].(string); {
		case kind == "none": // it is over
		case sizeOf(kind, n.key) == nil:
			unfit.add(n, "a "+kind)
		default:
			all = append(all, sized{n, kind, 0})
		}
	}
	if len(all) == 0 {
		return nil, unfit.orNil()
	}
	sizes, err := s.in(ctx, names[0].db, commandOf(all, func(n sized) []string { return sizeOf(n.kind, n.key) })...)
	if err != nil {
		return nil, err
	}
	for i := range all {
		n := &all[i]
		size, _ := sizes[i].(int64)
		switch text := n.kind == contents.TextKind.String(); {
		case text && size > keyspace.MaxValue:
			unfit.add(n.name, fmt.Sprintf("more than %d bytes", keyspace.MaxValue))
		case text:
			n.bytes = int(size)
		case size > keyspace.MaxElements:
			unfit.add(n.name, fmt.Sprintf("more than %d elements", keyspace.MaxElements))
		default:
			n.bytes = int(size) * elementBytes
		}
	}
	return all, unfit.orNil()
}

// values reads the keys. What is left of their times is asked for last, with the time as of when it
// was.
func (s *atUpstream) values(ctx context.Context, keys []sized) ([]lock, error) {
	db := keys[0].db
	commands := commandOf(keys, func(n sized) []string { return valueOf(n.kind, n.key) })
	commands = append(commands, commandOf(keys, func(n sized) []string { return []string{"PTTL", n.key} })...)
	commands = append(commands, []string{"TIME"})
	sent := time.Now()
	replies, err := s.in(ctx, db, commands...)
	if err != nil {
		return nil, err
	}
	received := time.Now()
	then, _ := timeOf(replies[len(replies)-1])
	at := s.clock.ours(then, sent, received)
	unfit := &UnfitError{}
	var all []lock
	for i, n := range keys {
		left, _ := replies[len(keys)+i].(int64)
		content, err := decode(n.kind, replies[i])
		switch {
		case err != nil:
			return nil, fmt.Errorf("lock key '%s' (database %d): %w", syntax.Shown(n.key), db, err)
		case content == nil || left == -2: // it is over
			continue
		case content.Size() > keyspace.MaxValue:
			unfit.add(n.name, fmt.Sprintf("more than %d bytes", keyspace.MaxValue))
			continue
		}
		if hash, is := content.(*contents.Hash); is && s.fieldsEnd[db] {
			if ends, err := s.endsByField(ctx, n.name, hash); err != nil {
				return nil, err
			} else if ends {
				unfit.add(n.name, "a hash of which a field has an end of its own")
			}
		}
		found := lock{name: n.name, value: contents.Encode(content)}
		if left >= 0 {
			found.end = at.Add(time.Duration(left) * time.Millisecond)
		}
		all = append(all, found)
	}
	return all, unfit.orNil()
}

// endsByField reports whether a field of a hash has an end of its own.
func (s *atUpstream) endsByField(ctx context.Context, n name, hash *contents.Hash) (bool, error) {
	fields := hash.Fields()
	replies, err := s.in(ctx, n.db, append([]string{"HPEXPIRETIME", n.key, "FIELDS", strconv.Itoa(len(fields))}, fields...))
	if err != nil {
		return false, err
	}
	ends, _ := replies[0].([]any)
	return slices.ContainsFunc(ends, func(end any) bool { at, _ := end.(int64); return at > 0 }), nil
}

func (s *atUpstream) put(ctx context.Context, locks []lock) (err error) {
	if s.clock.at.IsZero() && len(locks) > 0 {
		if s.clock, err = readClock(ctx, s.conn); err != nil {
			return err
		}
	}
	for len(locks) > 0 {
		n, size := 0, 0
		for n < len(locks) && (n == 0 || size+len(locks[n].value) <= readBytes) {
			size += len(locks[n].value)
			n++
		}
		if err := s.write(ctx, locks[:n]); err != nil {
			return err
		}
		locks = locks[n:]
	}
	return nil
}

// try has the upstream queue what put and remove send, and discard it: what it would refuse to do
// it refuses to queue.
func (s *atUpstream) try(ctx context.Context, locks []lock) error {
	for part := range slices.Chunk(locks, tried) {
		commands := [][]string{{"MULTI"}}
		for _, l := range part {
			content, err := contents.Decode(l.value)
			if err != nil {
				return err
			}
			name, words := making(content)
			commands = append(commands, []string{"DEL", l.key}, append([]string{name, l.key}, slices.Repeat([]string{"1"}, min(len(words), 2))...), []string{"PEXPIREAT", l.key, "1"})
		}
		if _, err := s.in(ctx, part[0].db, append(commands, []string{"DISCARD"})...); err != nil {
			return err
		}
	}
	return nil
}

func (s *atUpstream) mayHold(_ context.Context, bytes int64) error {
	if s.room >= 0 && s.room < bytes {
		return fmt.Errorf("the upstream has room for %d (maxmemory)", s.room)
	}
	return nil
}

// write has the upstream hold locks; once more, if its clock was set meanwhile.
func (s *atUpstream) write(ctx context.Context, locks []lock) error {
	for range tries {
		var commands [][]string
		for _, l := range locks {
			content, err := contents.Decode(l.value)
			if err != nil {
				return err
			}
			end := time.Time{}
			if !l.end.IsZero() {
				end = s.clock.theirs(l.end)
			}
			commands = append(commands, writing(l.key, content, end)...)
		}
		sent := time.Now()
		replies, err := s.in(ctx, locks[0].db, append(commands, []string{"TIME"})...)
		if err != nil {
			return err
		}
		if then, ok := timeOf(replies[len(replies)-1]); ok && s.clock.isSteady(then, sent, time.Now()) {
			return nil
		}
		if s.clock, err = readClock(ctx, s.conn); err != nil {
			return err
		}
	}
	return errors.New("the clock of the upstream is set again and again")
}

func (s *atUpstream) remove(ctx context.Context, names []name) (removed int, err error) {
	for part := range parts(names) {
		words := []string{"DEL"}
		for _, n := range part {
			words = append(words, n.key)
		}
		replies, err := s.in(ctx, part[0].db, words)
		if err != nil {
			return removed, err
		}
		n, _ := replies[0].(int64)
		removed += int(n)
	}
	return removed, nil
}

// commandOf is a command for each.
func commandOf[T any](all []T, command func(T) []string) [][]string {
	commands := make([][]string, len(all))
	for i, one := range all {
		commands[i] = command(one)
	}
	return commands
}
