package keyspace

import "redlock-proxy/commands/catalog/syntax"

// errFieldsExpire is the error reply to a command that would set an expiry of a hash field.
const errFieldsExpire = "ERR fields of a lock key cannot expire; set an expiry on the key, or use one key per field"

// fieldsAt parses FIELDS count field … at the end of a command, with wordsPerField words for each
// field.
func (c call) fieldsAt(at, wordsPerField int) (fields []string) {
	require(len(c.words) >= at+2 && syntax.Lower(c.words[at]) == "fields",
		"ERR Mandatory argument FIELDS is missing or not at the right position")
	count, ok := syntax.Int(c.words[at+1])
	fields = c.words[at+2:]
	require(ok && count >= 1, "ERR Number of fields must be a positive integer")
	require(int64(len(fields)) == count*int64(wordsPerField) && count <= int64(len(fields)),
		"ERR The `numfields` parameter must match the number of arguments")
	return fields
}

// hgetdel implements HGETDEL key FIELDS count field ….
func (c call) hgetdel() Reply {
	fields := c.fieldsAt(2, 1)
	k, h := c.hash()
	if h == nil {
		return fieldsOf(h, fields)
	}
	reply := ArrayReply()
	for _, field := range fields {
		reply.Elems = append(reply.Elems, fieldOf(h, field))
		h.Delete(field)
	}
	k.setCollection(h)
	return reply
}

// hgetex implements HGETEX key [PERSIST] FIELDS count field …. PERSIST does nothing, because
// fields have no expiry.
func (c call) hgetex() Reply {
	at := 2
	switch option := syntax.Lower(c.words[2]); {
	case option == "persist":
		at = 3
	case isUnit(option):
		return ErrorReply(errFieldsExpire)
	}
	fields := c.fieldsAt(at, 1)
	_, h := c.hash()
	return fieldsOf(h, fields)
}

func isUnit(option string) bool {
	_, ok := units[option]
	return ok
}

// hsetex implements HSETEX key [FNX | FXX] [KEEPTTL] FIELDS count field value ….
func (c call) hsetex() Reply {
	at, requireNone, requireAll := 2, false, false
	for ; at < len(c.words) && syntax.Lower(c.words[at]) != "fields"; at++ {
		switch option := syntax.Lower(c.words[at]); {
		case option == "fnx":
			requireNone = true
		case option == "fxx":
			requireAll = true
		case option == "keepttl":
		case isUnit(option):
			return ErrorReply(errFieldsExpire)
		default:
			return ErrorReply("ERR unknown argument: " + c.words[at])
		}
	}
	require(!requireNone || !requireAll, "ERR Only one of FXX or FNX arguments can be specified")
	fields := c.fieldsAt(at, 2)
	k, h := c.hashToEdit()
	k.replyDependsOn = k.replyDependsOn || requireNone || requireAll
	for i := 0; i < len(fields); i += 2 {
		if _, present := h.Get(fields[i]); requireNone && present || requireAll && !present {
			return IntReply(0)
		}
	}
	for i := 0; i < len(fields); i += 2 {
		h.Set(fields[i], fields[i+1])
	}
	k.setCollection(h)
	return IntReply(1)
}
