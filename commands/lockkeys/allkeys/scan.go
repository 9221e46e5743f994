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
	// defaultCount is Redis' own. Of lock keys minPage to maxPage are returned at once, since each
	// look at them costs about the same.
	defaultCount     = 10
	minPage, maxPage = 100, 1000
)

// scanOptions are what stands after the cursor of a SCAN.
type scanOptions struct {
	match string
	count int64
	// kind is the type of the keys that are asked for, if it is of one.
	kind string
}

// errCursor is in the wording of Redis.
const errCursor = "ERR invalid cursor"

// parseScan reads [MATCH pattern] [COUNT count] [TYPE type]. The errors are in the wording of
// Redis.
func parseScan(words [][]byte) (o scanOptions, failed string) {
	o = scanOptions{match: everything, count: defaultCount}
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

// ParseWhole reads the words of a SCAN that gets all keys at once, by its first cursor; kind is the
// type that the keys must have, if any. The errors are in the wording of Redis.
func ParseWhole(words []string) (match, kind string, begins bool, failed string) {
	n, ok := parseCursor([]byte(words[1]))
	o, failed := parseScan(syntax.Bytes(words[2:]))
	if !ok {
		failed = errCursor
	}
	return o.match, o.kind, n == 0, failed
}

// scan is SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]: first the upstream's keys, then
// the lock keys. All that exists all the time is returned, whatever else comes and goes.
func (a *AllKeys) scan(c command.Call) {
	n, ok := parseCursor(c.Args[1])
	at, ours := readCursor(n)
	switch {
	case c.Client.Ask != nil && !ours:
		a.scanUpstream(c)
	case !ok:
		c.Out.Error(errCursor)
	default:
		a.scanLocks(c, n, at, ours)
	}
}

// scanUpstream has the upstream go on. To what it returns last the first lock keys are added.
func (a *AllKeys) scanUpstream(c command.Call) {
	reply, ok := c.AskUpstream()
	if !ok {
		return
	}
	next, elements, ok := readScan(reply)
	options, unknown := parseScan(c.Args[2:])
	_, ours := readCursor(next)
	switch {
	case !ok || unknown != "": // which the upstream has understood
		c.Out.Raw(reply)
	case ours:
		c.Out.Error(fmt.Sprintf("ERR the upstream's cursor %d cannot be distinguished from those of lock keys", next))
	case next != 0:
		c.Out.Raw(reply)
	default:
		held, more, err := a.page(c.Ctx, c.Client.DB, cursor{}, false, options)
		writeScan(c.Out, elements, held, more, err)
	}
}

// readScan takes a reply to SCAN apart.
func readScan(reply []byte) (next uint64, elements []byte, ok bool) {
	n, rest, ok := resp.Header(reply)
	if !ok || n != 2 {
		return 0, nil, false
	}
	size := resp.WholeReply(rest)
	texts := resp.Texts(rest[:size])
	if len(texts) != 1 {
		return 0, nil, false
	}
	next, ok = parseCursor([]byte(texts[0]))
	_, _, isArray := resp.Header(rest[size:])
	return next, rest[size:], ok && isArray
}

// scanLocks returns lock keys: from their first one on where there is no upstream, else from a
// cursor on.
func (a *AllKeys) scanLocks(c command.Call, n uint64, at cursor, ours bool) {
	options, failed := parseScan(c.Args[2:])
	if failed == "" && c.Client.Ask != nil { // which would decide by itself, did it see the command
		failed = c.Client.RefusalOf(c.Ctx, "scan", "0")
	}
	switch {
	case failed != "":
		c.Out.Error(failed)
	case n != 0 && !ours: // nobody was given such a cursor
		writeScan(c.Out, nil, nil, 0, nil)
	default:
		held, more, err := a.page(c.Ctx, c.Client.DB, at, ours, options)
		writeScan(c.Out, nil, held, more, err)
	}
}

// page is a page of lock keys, and the number of the cursor for the next one; 0: there is none.
func (a *AllKeys) page(ctx context.Context, db int, at cursor, going bool, o scanOptions) (held []string, next uint64, err error) {
	err = a.look(ctx, func(ctx context.Context) error {
		places, kept := []place(nil), false
		if going {
			places, kept = a.snapshots.find(at.generation, db)
		}
		if !kept {
			at.generation = uint32(a.random(1 << generationBits))
			all, err := a.matching(ctx, db, everything)
			if err != nil {
				return err
			}
			places = inOrder(all)
		}
		pattern := keys.Compile(o.match)
		var tooComplex error
		found, position, more := page(places, at.position, int(min(max(o.count, minPage), maxPage)), func(key string) bool {
			fits, err := pattern.Match(key)
			tooComplex = cmp.Or(tooComplex, err)
			return fits
		})
		if tooComplex != nil {
			return tooComplex
		}
		switch {
		case more && !kept:
			a.snapshots.keep(at.generation, db, places)
		case !more && kept:
			a.snapshots.drop(at.generation)
		}
		if more {
			next = cursor{at.generation, position}.number()
		}
		held, err = a.present(ctx, db, found, o.kind)
		return err
	})
	return held, next, err
}

// writeScan writes the reply to a SCAN: elements are an array of the upstream's, or nothing.
func writeScan(out *command.Reply, elements []byte, more []string, next uint64, err error) {
	if err != nil {
		out.Fail(err)
		return
	}
	out.Array(2)
	out.Bulk(strconv.FormatUint(next, 10))
	if elements == nil {
		out.Strings(more)
		return
	}
	out.Raw(withElements(elements, more))
}
