package allkeys

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/internal/resp"
)

const (
	// defaultCount is Redis' default of COUNT. scan raises a smaller COUNT to minPage and lowers a
	// larger COUNT to maxPage, because pages of any size cost about the same.
	defaultCount     = 10
	minPage, maxPage = 100, 1000
)

// scanOptions holds the options after the cursor of SCAN.
type scanOptions struct {
	match string
	count int64
	// kind is the type that the keys must have, or "".
	kind string
}

// errCursor is Redis' error for an invalid cursor.
const errCursor = "ERR invalid cursor"

// parseScan parses [MATCH pattern] [COUNT count] [TYPE type]. The errors are in Redis' wording.
func parseScan(words [][]byte) (o scanOptions, errText string) {
	o = scanOptions{match: matchAll, count: defaultCount}
	for ; len(words) > 0; words = words[2:] {
		if len(words) < 2 {
			return o, syntax.ErrSyntax
		}
		switch syntax.Lower(words[0]) {
		case "match":
			o.match = string(words[1])
		case "count":
			n, ok := syntax.Int(words[1])
			switch {
			case !ok:
				return o, syntax.ErrNotInteger
			case n < 1:
				return o, syntax.ErrSyntax
			}
			o.count = n
		case "type":
			o.kind = syntax.Lower(words[1])
		default:
			return o, syntax.ErrSyntax
		}
	}
	return o, ""
}

// ParseFullScan parses a SCAN whose first reply has all keys. isFirst reports whether the cursor is
// the first cursor, 0. kind is the type that the keys must have, or "". The errors have Redis'
// wording.
func ParseFullScan(words []string) (match, kind string, isFirst bool, errText string) {
	n, ok := parseCursor([]byte(words[1]))
	o, errText := parseScan(syntax.Bytes(words[2:]))
	if !ok {
		errText = errCursor
	}
	return o.match, o.kind, n == 0, errText
}

// scan runs SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]: it returns the upstream's keys,
// then the lock keys. It returns every key that exists during the whole SCAN, even if clients add
// and remove other keys.
func (a *AllKeys) scan(c command.Call) {
	n, ok := parseCursor(c.Args[1])
	from, isLockCursor := decodeCursor(n)
	switch {
	case c.Client.Ask != nil && !isLockCursor:
		a.scanUpstream(c)
	case !ok:
		c.Out.WriteError(errCursor)
	default:
		a.scanLocks(c, n, from, isLockCursor)
	}
}

// scanUpstream returns the upstream's next keys. After the upstream's last keys, it adds the first
// lock keys.
func (a *AllKeys) scanUpstream(c command.Call) {
	reply, ok := c.AskUpstream()
	if !ok {
		return
	}
	next, elements, ok := readScan(reply)
	options, errText := parseScan(c.Args[2:])
	_, isLockCursor := decodeCursor(next)
	switch {
	case !ok || errText != "": // the upstream has accepted the command
		c.Out.WriteRaw(reply)
	case isLockCursor:
		c.Out.WriteError(fmt.Sprintf("ERR cannot continue SCAN: the upstream's cursor %d looks like a cursor of lock keys; "+
			"send SCAN to the upstream directly", next))
	case next != 0:
		c.Out.WriteRaw(reply)
	default:
		lockKeys, lockCursor, err := a.page(c.Ctx, c.Client, cursor{}, false, options)
		writeScan(c.Out, elements, lockKeys, lockCursor, err)
	}
}

// readScan splits a reply to SCAN into the next cursor and the array of keys.
func readScan(reply []byte) (next uint64, elements []byte, ok bool) {
	n, rest, ok := resp.Header(reply)
	if !ok || n != 2 {
		return 0, nil, false
	}
	size := resp.WholeReplyLen(rest)
	texts := resp.Texts(rest[:size])
	if len(texts) != 1 {
		return 0, nil, false
	}
	next, ok = parseCursor([]byte(texts[0]))
	_, _, isArray := resp.Header(rest[size:])
	return next, rest[size:], ok && isArray
}

// scanLocks returns the lock keys from a cursor on. Without an upstream, the first cursor is 0.
func (a *AllKeys) scanLocks(c command.Call, n uint64, from cursor, isLockCursor bool) {
	options, errText := parseScan(c.Args[2:])
	// The upstream does not get this command, so the proxy asks whether the client may run SCAN.
	if errText == "" && c.Client.Ask != nil {
		errText = c.Client.RefusalOf(c.Ctx, "scan", "0")
	}
	switch {
	case errText != "":
		c.Out.WriteError(errText)
	case n != 0 && !isLockCursor: // a cursor that no SCAN has returned
		writeScan(c.Out, nil, nil, 0, nil)
	default:
		lockKeys, lockCursor, err := a.page(c.Ctx, c.Client, from, isLockCursor, options)
		writeScan(c.Out, nil, lockKeys, lockCursor, err)
	}
}

// page returns a page of lock keys, and the cursor of the next page, or 0 if this is the last page.
func (a *AllKeys) page(
	ctx context.Context, client *command.Client, from cursor, continues bool, o scanOptions,
) (lockKeys []string, next uint64, err error) {
	db := client.DB
	err = a.withListSlot(ctx, func(ctx context.Context) error {
		ordered, fromSnapshot := []orderedKey(nil), false
		if continues {
			ordered, fromSnapshot = a.snapshots.find(from.snapshotID, db)
		}
		if !fromSnapshot {
			from.snapshotID = uint32(a.random(1 << snapshotIDBits))
			all, err := a.listCandidates(ctx, db, matchAll)
			if err != nil {
				return err
			}
			ordered = sortInScanOrder(all)
		}
		pattern := keys.Compile(o.match)
		var matchErr error
		count := int(min(max(o.count, minPage), maxPage))
		found, position, more := selectPage(ordered, from.position, count, func(key string) bool {
			matches, err := pattern.Match(key)
			matchErr = cmp.Or(matchErr, err)
			return matches && (client.ListsKey == nil || client.ListsKey(key))
		})
		if matchErr != nil {
			return matchErr
		}
		switch {
		case more && !fromSnapshot:
			a.snapshots.add(from.snapshotID, db, ordered)
		case !more && fromSnapshot:
			a.snapshots.drop(from.snapshotID)
		}
		if more {
			next = cursor{from.snapshotID, position}.encode()
		}
		lockKeys, err = a.presentKeys(ctx, db, found, o.kind)
		return err
	})
	return lockKeys, next, err
}

// writeScan writes the reply to SCAN. elements is the array in the upstream's reply, or nil.
func writeScan(out *command.Reply, elements []byte, lockKeys []string, next uint64, err error) {
	if err != nil {
		out.Fail(err)
		return
	}
	out.WriteArray(2)
	out.WriteBulk(strconv.FormatUint(next, 10))
	if elements == nil {
		out.WriteStrings(lockKeys)
		return
	}
	out.WriteRaw(withElements(elements, lockKeys))
}
