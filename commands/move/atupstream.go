package move

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/commands/lockkeys/keyspace/contents"
	"redlock-proxy/internal/redisinfo"
	"redlock-proxy/quorum/location"
)

// upstreamStore implements store for the upstream, on one connection.
type upstreamStore struct {
	*Mover
	conn Connection
	// fieldsExpire holds the databases with hashes whose fields expire individually.
	fieldsExpire map[int]bool
	room         int64
}

const (
	// scanCount is the COUNT of SCAN.
	scanCount = 1000
	// maxBatchBytes limits the values that one request reads or writes, in bytes. A read uses the
	// sizes that measure has returned.
	maxBatchBytes = 8 << 20
	// trialSize limits how many locks one trial transaction contains.
	trialSize = 100
	// absentClientID is an ID that no connection has.
	absentClientID = "4611686018427387904"
	// elementBytes is the assumed size of an element of a collection, in bytes.
	elementBytes = 64
)

// askTimeout limits each request to the upstream. It is less than the lease of a move. A mover that
// has lost the upstream, but still renews the lease, must not pause commands for longer than a
// mover that crashed.
const askTimeout = location.Lease - time.Second

// errConnectionLost means that all later requests on the connection fail, too.
var errConnectionLost = errors.New("the connection to the upstream is lost")

// ask sends commands and returns their replies. It fails if one of the replies is an error.
func ask(ctx context.Context, conn Connection, commands ...[]string) ([]any, error) {
	if len(commands) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, askTimeout, fmt.Errorf("no reply within %v", askTimeout))
	defer cancel()
	replies, err := conn.Ask(ctx, commands...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errConnectionLost, err)
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
	if refused, ok := reply.(error); ok {
		return refused
	}
	elems, _ := reply.([]any)
	for _, elem := range elems {
		if refused, ok := elem.(error); ok {
			return refused
		}
	}
	return nil
}

// readDatabases returns the numbers of the databases that are not empty, ascending.
func (s *upstreamStore) readDatabases(ctx context.Context) ([]int, error) {
	replies, err := ask(ctx, s.conn, []string{"INFO", "keyspace"})
	if err != nil {
		return nil, err
	}
	text, _ := replies[0].(string)
	info := redisinfo.Parse(text)
	s.fieldsExpire = map[int]bool{}
	databases := info.Databases()
	for _, db := range databases {
		for count := range strings.SplitSeq(info["db"+strconv.Itoa(db)], ",") {
			property, n, _ := strings.Cut(count, "=")
			// The number of keys with fields that expire has different names in Redis and Valkey.
			if (property == "subexpiry" || property == "keys_with_volatile_items") && n != "0" {
				s.fieldsExpire[db] = true
			}
		}
	}
	return databases, nil
}

func (s *upstreamStore) list(ctx context.Context) ([]lockName, error) {
	names, _, err := s.scan(ctx, math.MaxInt)
	return names, err
}

// scan finds the lock keys in about limit buckets of the hash tables at the upstream. more is set
// if there are more buckets.
func (s *upstreamStore) scan(ctx context.Context, limit int) (foundNames []lockName, more bool, err error) {
	databases, err := s.readDatabases(ctx)
	if err != nil {
		return nil, false, err
	}
	for _, db := range databases {
		seen := map[string]bool{}
		for cursor, first := "0", true; first || cursor != "0"; first = false {
			if limit <= 0 {
				return foundNames, true, nil
			}
			limit -= scanCount
			scan := append([]string{"SCAN", cursor, "COUNT", strconv.Itoa(scanCount)}, s.matchArgs()...)
			replies, err := s.askInDatabase(ctx, db, scan)
			if err != nil {
				return nil, false, err
			}
			page, _ := replies[0].([]any)
			if len(page) != 2 {
				return nil, false, errors.New("unexpected reply from the upstream to SCAN")
			}
			cursor, _ = page[0].(string)
			for _, key := range stringsOf(page[1]) {
				if !seen[key] && key != location.RecordKey && s.lockKeys.Match([]byte(key)) {
					seen[key] = true
					foundNames = append(foundNames, lockName{db, key})
				}
			}
		}
	}
	return foundNames, false, nil
}

// matchArgs returns the MATCH option of SCAN that skips keys without the common prefix of all lock
// keys. It does not contain the globs themselves, because servers may match differently.
func (s *upstreamStore) matchArgs() []string {
	if common := commonPrefix(s.opts.LockKeys); common != "" {
		return []string{"MATCH", common + "*"}
	}
	return nil
}

// commonPrefix returns the common prefix of all keys that match one of the globs.
func commonPrefix(globs []string) string {
	common := ""
	for i, glob := range globs {
		prefix := keys.Prefix(glob)
		if i == 0 {
			common = prefix
		}
		for !strings.HasPrefix(prefix, common) {
			common = common[:len(common)-1]
		}
	}
	return common
}

// askInDatabase sends commands in a database, and returns their replies.
func (s *upstreamStore) askInDatabase(ctx context.Context, db int, commands ...[]string) ([]any, error) {
	replies, err := ask(ctx, s.conn, append([][]string{{"SELECT", strconv.Itoa(db)}}, commands...)...)
	if err != nil {
		return nil, err
	}
	return replies[1:], nil
}

// unfitKeys describes lock keys whose values the masters cannot store.
type unfitKeys []string

func (u *unfitKeys) add(n lockName, reason string) {
	*u = append(*u, fmt.Sprintf("%v: %s", n, reason))
}

// err returns an error with the keys and the reasons, or nil if there are none.
func (u unfitKeys) err() error {
	if len(u) == 0 {
		return nil
	}
	return errors.New("lock keys at the upstream have values that the masters cannot store: " + summarize(u))
}

// sizedKey holds a key with its type and its approximate size in bytes.
type sizedKey struct {
	lockName
	valueType string
	bytes     int
}

func (s *upstreamStore) read(ctx context.Context, names []lockName) ([]lock, error) {
	keys, err := s.measure(ctx, names)
	if err != nil {
		return nil, err
	}
	var locks []lock
	for len(keys) > 0 {
		n, size := 0, 0
		for n < len(keys) && (n == 0 || size+keys[n].bytes <= maxBatchBytes) {
			size += keys[n].bytes
			n++
		}
		part, err := s.readValues(ctx, keys[:n])
		if err != nil {
			return nil, err
		}
		locks, keys = append(locks, part...), keys[n:]
	}
	return locks, nil
}

// measure returns the types and sizes of keys without reading their values.
func (s *upstreamStore) measure(ctx context.Context, names []lockName) ([]sizedKey, error) {
	var keys []sizedKey
	var unfit unfitKeys
	askType := commandsFor(names, func(n lockName) []string { return []string{"TYPE", n.key} })
	types, err := s.askInDatabase(ctx, names[0].db, askType...)
	if err != nil {
		return nil, err
	}
	for i, n := range names {
		kind, _ := types[i].(string)
		if _, fits := commandsByType[kind]; fits {
			keys = append(keys, sizedKey{n, kind, 0})
		} else if kind != "none" { // it has not expired
			unfit.add(n, "a "+kind)
		}
	}
	if len(keys) == 0 {
		return nil, unfit.err()
	}
	askSize := commandsFor(keys, func(n sizedKey) []string { return []string{commandsByType[n.valueType].size, n.key} })
	sizes, err := s.askInDatabase(ctx, names[0].db, askSize...)
	if err != nil {
		return nil, err
	}
	for i := range keys {
		n := &keys[i]
		size, _ := sizes[i].(int64)
		limit, unit, unitBytes := int64(keyspace.MaxElements), "elements", elementBytes
		if n.valueType == contents.TextKind.String() {
			limit, unit, unitBytes = keyspace.MaxValue, "bytes", 1
		}
		if size > limit {
			unfit.add(n.lockName, fmt.Sprintf("more than %d %s", limit, unit))
		}
		n.bytes = int(size) * unitBytes
	}
	return keys, unfit.err()
}

// readValues reads keys. It repeats the read for keys whose fields changed meanwhile.
func (s *upstreamStore) readValues(ctx context.Context, keys []sizedKey) (locks []lock, err error) {
	for range maxTries {
		part, changed, err := s.readOnce(ctx, keys)
		if locks = append(locks, part...); err != nil || len(changed) == 0 {
			return locks, err
		}
		keys = changed
	}
	return nil, fmt.Errorf("the fields of lock key %v keep changing", keys[0])
}

// readOnce reads keys. It reads the expiry of fields before the values, so that it notices a field
// that expires meanwhile. changedKeys holds the keys whose fields changed meanwhile.
func (s *upstreamStore) readOnce(ctx context.Context, keys []sizedKey) (locks []lock, changedKeys []sizedKey, err error) {
	db := keys[0].db
	fields, err := s.expiringHashes(ctx, keys)
	if err != nil {
		return nil, nil, err
	}
	commands := commandsFor(fields, func(h hashFields) []string {
		return append([]string{"HPEXPIRETIME", h.key, "FIELDS", strconv.Itoa(len(h.names))}, h.names...)
	})
	commands = append(commands, commandsFor(keys, func(n sizedKey) []string { return valueCommand(n.valueType, n.key) })...)
	commands = append(commands, commandsFor(keys, func(n sizedKey) []string { return []string{"PTTL", n.key} })...)
	replies, err := s.askInDatabase(ctx, db, commands...)
	if err != nil {
		return nil, nil, err
	}
	readAt := time.Now()
	expiries := map[string][]any{}
	for i, h := range fields {
		expiries[h.key], _ = replies[i].([]any)
	}
	replies = replies[len(fields):]
	var unfit unfitKeys
	for i, n := range keys {
		left, _ := replies[len(keys)+i].(int64)
		content, err := decode(n.valueType, replies[i])
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("lock key %v: %w", n, err)
		case content == nil || left == -2: // it has expired
			continue
		case content.Size() > keyspace.MaxValue:
			unfit.add(n.lockName, fmt.Sprintf("more than %d bytes", keyspace.MaxValue))
			continue
		}
		if hash, ok := content.(*contents.Hash); ok && s.fieldsExpire[db] {
			switch expires, complete := fieldExpiry(expiries[n.key], hash.Len()); {
			case expires:
				unfit.add(n.lockName, "a hash with a field that expires by itself")
			case !complete:
				changedKeys = append(changedKeys, n)
				continue
			}
		}
		found := lock{lockName: n.lockName, value: contents.Encode(content)}
		if left >= 0 && left < longestTTL.Milliseconds() {
			found.expiry = readAt.Add(time.Duration(left) * time.Millisecond)
		}
		locks = append(locks, found)
	}
	return locks, changedKeys, unfit.err()
}

func (s *upstreamStore) put(ctx context.Context, locks []lock) error {
	for len(locks) > 0 {
		var commands [][]string
		n, size := 0, 0
		for n < len(locks) && (n == 0 || size+len(locks[n].value) <= maxBatchBytes) {
			content, err := contents.Decode(locks[n].value)
			if err != nil {
				return err
			}
			commands = append(commands, writeCommands(locks[n].key, content, locks[n].ttl())...)
			size += len(locks[n].value)
			n++
		}
		if _, err := s.askInDatabase(ctx, locks[0].db, commands...); err != nil {
			return err
		}
		locks = locks[n:]
	}
	return nil
}

// checkWrites implements store. It makes the upstream queue the commands of put and remove, and
// discards them. The upstream refuses to queue a command that it would refuse to run. An empty
// transaction tries EXEC.
func (s *upstreamStore) checkWrites(ctx context.Context, locks []lock) error {
	for part := range slices.Chunk(locks, trialSize) {
		commands := [][]string{{"MULTI"}}
		for _, l := range part {
			content, err := contents.Decode(l.value)
			if err != nil {
				return err
			}
			name, words := createCommand(content)
			create := append([]string{name, l.key}, slices.Repeat([]string{"1"}, min(len(words), 2))...)
			commands = append(commands, []string{"DEL", l.key}, create, []string{"PEXPIRE", l.key, "1"})
		}
		commands = append(commands, []string{"DISCARD"}, []string{"MULTI"}, []string{"EXEC"})
		if _, err := s.askInDatabase(ctx, part[0].db, commands...); err != nil {
			return err
		}
	}
	return nil
}

func (s *upstreamStore) checkRoom(_ context.Context, bytes int64) error {
	if s.room >= 0 && s.room < bytes {
		return fmt.Errorf("the upstream has room for %d bytes (maxmemory)", s.room)
	}
	return nil
}

func (s *upstreamStore) remove(ctx context.Context, names []lockName) (removed int, err error) {
	for part := range partsByDatabase(names) {
		words := []string{"DEL"}
		for _, n := range part {
			words = append(words, n.key)
		}
		replies, err := s.askInDatabase(ctx, part[0].db, words)
		if err != nil {
			return removed, err
		}
		n, _ := replies[0].(int64)
		removed += int(n)
	}
	return removed, nil
}

// commandsFor returns the command for each element.
func commandsFor[T any](elems []T, command func(T) []string) [][]string {
	commands := make([][]string, len(elems))
	for i, elem := range elems {
		commands[i] = command(elem)
	}
	return commands
}
