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
	"redlock-proxy/quorum/location"
)

// atUpstream is the store of the locks at the upstream. It uses one connection.
type atUpstream struct {
	*Mover
	conn Connection
	// fieldsExpire holds the databases with hashes whose fields expire individually.
	fieldsExpire map[int]bool
	clock        clock
	room         int64
}

const (
	// scanCount is the COUNT of SCAN.
	scanCount = 1000
	// readBytes limits how many bytes of values one request reads, by the sizes known before.
	readBytes = 8 << 20
	// trialSize limits how many locks one trial transaction writes.
	trialSize = 100
	// noClient is an ID that no connection has.
	noClient = "4611686018427387904"
	// elementBytes is the assumed size of an element of a collection, in bytes.
	elementBytes = 64
)

// ask sends commands and returns their replies. It fails if one of the replies is an error.
func ask(ctx context.Context, conn Connection, commands ...[]string) ([]any, error) {
	if len(commands) == 0 {
		return nil, nil
	}
	replies, err := conn.Ask(ctx, commands...)
	if err != nil {
		return nil, fmt.Errorf("the connection to the upstream is lost: %w", err)
	}
	for i, reply := range replies {
		if refused := refusal(reply); refused != nil {
			return nil, fmt.Errorf("the upstream refused %s: %w", commands[i][0], refused)
		}
	}
	return replies, nil
}

// refusal returns the error in a reply, or in an element of an EXEC's reply; nil if there is none.
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

// checkUpstream checks whether locks can be moved, and records the IDs of connection and server.
func (r *run) checkUpstream(ctx context.Context) error {
	replies, err := ask(ctx, r.conn, []string{"INFO"}, []string{"CLIENT", "ID"}, []string{"CLIENT", "LIST"},
		[]string{"CLIENT", "KILL", "ID", noClient}) // checks the permission for CLIENT KILL
	if err != nil {
		return err
	}
	text, _ := replies[0].(string)
	info := redisinfo.Parse(text)
	id, _ := replies[1].(int64)
	r.connID, r.server, r.room = strconv.FormatInt(id, 10), info["run_id"], info.Room()
	switch mode := cmp.Or(info["redis_mode"], info["server_mode"]); {
	case info["role"] != "master":
		return fmt.Errorf("the upstream is not a master but a %q", info["role"])
	case mode == "cluster" || mode == "sentinel":
		return fmt.Errorf("the upstream is not standalone (mode %s): "+
			"locks can be moved only from or to a standalone Redis", mode)
	case info["loading"] == "1":
		return errors.New("the upstream is loading its data")
	case id == 0:
		return errors.New("the upstream does not support CLIENT ID, which a move needs")
	}
	// This checks the permission to write the record.
	_, err = ask(ctx, r.conn, []string{"MULTI"}, []string{"HSETNX", location.RecordKey, "", ""}, []string{"DISCARD"})
	return err
}

// databases returns the numbers of the databases that are not empty, ascending.
func (s *atUpstream) databases(ctx context.Context) ([]int, error) {
	replies, err := ask(ctx, s.conn, []string{"INFO", "keyspace"})
	if err != nil {
		return nil, err
	}
	text, _ := replies[0].(string)
	info := redisinfo.Parse(text)
	s.fieldsExpire = map[int]bool{}
	all := info.Databases()
	for _, db := range all {
		for count := range strings.SplitSeq(info["db"+strconv.Itoa(db)], ",") {
			what, n, _ := strings.Cut(count, "=")
			// The number of keys with fields that expire has different names in Redis and Valkey.
			if (what == "subexpiry" || what == "keys_with_volatile_items") && n != "0" {
				s.fieldsExpire[db] = true
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

// scan finds the lock keys among at most the given number of keys at the upstream. more is set if
// there are more keys.
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
			most -= scanCount
			scan := append([]string{"SCAN", cursor, "COUNT", strconv.Itoa(scanCount)}, s.match()...)
			replies, err := s.inDatabase(ctx, db, scan)
			if err != nil {
				return nil, false, err
			}
			page, _ := replies[0].([]any)
			if len(page) != 2 {
				return nil, false, errors.New("unexpected reply from the upstream to SCAN")
			}
			cursor, _ = page[0].(string)
			for _, key := range stringsOf(page[1]) {
				if !found[key] && key != location.RecordKey && s.lockKeys.Match([]byte(key)) {
					found[key] = true
					all = append(all, name{db, key})
				}
			}
		}
	}
	return all, false, nil
}

// match returns the MATCH option of SCAN that skips keys without the common prefix of all lock
// keys. The globs themselves are not sent, because servers may match differently.
func (s *atUpstream) match() []string {
	if common := commonPrefix(s.opts.LockKeys); common != "" {
		return []string{"MATCH", common + "*"}
	}
	return nil
}

// commonPrefix returns the common prefix of all keys that match one of the globs.
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

// inDatabase sends commands in a database, and returns their replies.
func (s *atUpstream) inDatabase(ctx context.Context, db int, commands ...[]string) ([]any, error) {
	replies, err := ask(ctx, s.conn, append([][]string{{"SELECT", strconv.Itoa(db)}}, commands...)...)
	if err != nil {
		return nil, err
	}
	return replies[1:], nil
}

// UnfitError reports lock keys whose values the masters cannot store.
type UnfitError struct{ Keys []string }

// Error names the keys, and the reasons.
func (e *UnfitError) Error() string {
	return "lock keys at the upstream have values that the masters cannot store: " + summarize(e.Keys)
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

// sizedKey is a key with its type and its approximate size in bytes.
type sizedKey struct {
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

// measure returns the types and sizes of keys without reading their values.
func (s *atUpstream) measure(ctx context.Context, names []name) ([]sizedKey, error) {
	var all []sizedKey
	unfit := &UnfitError{}
	askType := commandOf(names, func(n name) []string { return []string{"TYPE", n.key} })
	types, err := s.inDatabase(ctx, names[0].db, askType...)
	if err != nil {
		return nil, err
	}
	for i, n := range names {
		switch kind, _ := types[i].(string); {
		case kind == "none": // it has expired
		case sizeOf(kind, n.key) == nil:
			unfit.add(n, "a "+kind)
		default:
			all = append(all, sizedKey{n, kind, 0})
		}
	}
	if len(all) == 0 {
		return nil, unfit.orNil()
	}
	askSize := commandOf(all, func(n sizedKey) []string { return sizeOf(n.kind, n.key) })
	sizes, err := s.inDatabase(ctx, names[0].db, askSize...)
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

// values reads keys. It reads their remaining times last, together with the time of the upstream.
func (s *atUpstream) values(ctx context.Context, keys []sizedKey) ([]lock, error) {
	db := keys[0].db
	commands := commandOf(keys, func(n sizedKey) []string { return valueOf(n.kind, n.key) })
	commands = append(commands, commandOf(keys, func(n sizedKey) []string { return []string{"PTTL", n.key} })...)
	commands = append(commands, []string{"TIME"})
	sent := time.Now()
	replies, err := s.inDatabase(ctx, db, commands...)
	if err != nil {
		return nil, err
	}
	received := time.Now()
	then, _ := timeOf(replies[len(replies)-1])
	at := s.clock.toLocal(then, sent, received)
	unfit := &UnfitError{}
	var all []lock
	for i, n := range keys {
		left, _ := replies[len(keys)+i].(int64)
		content, err := decode(n.kind, replies[i])
		switch {
		case err != nil:
			return nil, fmt.Errorf("lock key '%s' (database %d): %w", syntax.Shown(n.key), db, err)
		case content == nil || left == -2: // it has expired
			continue
		case content.Size() > keyspace.MaxValue:
			unfit.add(n.name, fmt.Sprintf("more than %d bytes", keyspace.MaxValue))
			continue
		}
		if hash, is := content.(*contents.Hash); is && s.fieldsExpire[db] {
			if ends, err := s.hasExpiringField(ctx, n.name, hash); err != nil {
				return nil, err
			} else if ends {
				unfit.add(n.name, "a hash with a field that expires by itself")
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

// hasExpiringField reports whether a field of a hash expires by itself.
func (s *atUpstream) hasExpiringField(ctx context.Context, n name, hash *contents.Hash) (bool, error) {
	fields := hash.Fields()
	command := append([]string{"HPEXPIRETIME", n.key, "FIELDS", strconv.Itoa(len(fields))}, fields...)
	replies, err := s.inDatabase(ctx, n.db, command)
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

// try makes the upstream queue the commands of put and remove, and discards them. The upstream
// refuses to queue a command that it would refuse to run.
func (s *atUpstream) try(ctx context.Context, locks []lock) error {
	for part := range slices.Chunk(locks, trialSize) {
		commands := [][]string{{"MULTI"}}
		for _, l := range part {
			content, err := contents.Decode(l.value)
			if err != nil {
				return err
			}
			name, words := createCommand(content)
			create := append([]string{name, l.key}, slices.Repeat([]string{"1"}, min(len(words), 2))...)
			commands = append(commands, []string{"DEL", l.key}, create, []string{"PEXPIREAT", l.key, "1"})
		}
		if _, err := s.inDatabase(ctx, part[0].db, append(commands, []string{"DISCARD"})...); err != nil {
			return err
		}
	}
	return nil
}

func (s *atUpstream) mayHold(_ context.Context, bytes int64) error {
	if s.room >= 0 && s.room < bytes {
		return fmt.Errorf("the upstream has room for %d bytes (maxmemory)", s.room)
	}
	return nil
}

// write stores locks at the upstream, again if the upstream's clock was changed meanwhile.
func (s *atUpstream) write(ctx context.Context, locks []lock) error {
	for range maxTries {
		var commands [][]string
		for _, l := range locks {
			content, err := contents.Decode(l.value)
			if err != nil {
				return err
			}
			end := time.Time{}
			if !l.end.IsZero() {
				end = s.clock.toUpstream(l.end)
			}
			commands = append(commands, writeCommands(l.key, content, end)...)
		}
		sent := time.Now()
		replies, err := s.inDatabase(ctx, locks[0].db, append(commands, []string{"TIME"})...)
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
	return errors.New("the clock of the upstream keeps changing")
}

func (s *atUpstream) remove(ctx context.Context, names []name) (removed int, err error) {
	for part := range parts(names) {
		words := []string{"DEL"}
		for _, n := range part {
			words = append(words, n.key)
		}
		replies, err := s.inDatabase(ctx, part[0].db, words)
		if err != nil {
			return removed, err
		}
		n, _ := replies[0].(int64)
		removed += int(n)
	}
	return removed, nil
}

// commandOf returns the command for each element.
func commandOf[T any](all []T, command func(T) []string) [][]string {
	commands := make([][]string, len(all))
	for i, one := range all {
		commands[i] = command(one)
	}
	return commands
}
