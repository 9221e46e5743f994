package move

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"redlock-proxy/commands/lockkeys/keyspace/contents"
)

// sizeOf is how the upstream is asked for the size of a key of a type; nil where no lock key on the
// masters can be of that type.
func sizeOf(kind, key string) []string {
	switch kind {
	case contents.TextKind.String():
		return []string{"STRLEN", key}
	case contents.ListKind.String():
		return []string{"LLEN", key}
	case contents.SetKind.String():
		return []string{"SCARD", key}
	case contents.SortedSetKind.String():
		return []string{"ZCARD", key}
	case contents.HashKind.String():
		return []string{"HLEN", key}
	}
	return nil
}

// valueOf is how it is asked for all of it.
func valueOf(kind, key string) []string {
	switch kind {
	case contents.ListKind.String():
		return []string{"LRANGE", key, "0", "-1"}
	case contents.SetKind.String():
		return []string{"SMEMBERS", key}
	case contents.SortedSetKind.String():
		return []string{"ZRANGE", key, "0", "-1", "WITHSCORES"}
	case contents.HashKind.String():
		return []string{"HGETALL", key}
	default:
		return []string{"GET", key}
	}
}

// errReply says that an upstream answers as no Redis does.
var errReply = errors.New("an unknown reply of the upstream")

// decode is the content of a reply to that; nil where nothing is there any more.
func decode(kind string, reply any) (contents.Content, error) {
	if kind == contents.TextKind.String() {
		text, is := reply.(string)
		if !is {
			return nil, nil
		}
		return contents.Text(text), nil
	}
	elems := texts(reply)
	switch {
	case len(elems) == 0:
		return nil, nil
	case kind == contents.ListKind.String():
		l := &contents.List{}
		l.Insert(0, elems...)
		return l, nil
	case kind == contents.SetKind.String():
		return contents.NewSet(elems...), nil
	case len(elems)%2 != 0:
		return nil, errReply
	case kind == contents.HashKind.String():
		h := contents.NewHash()
		for pair := range slices.Chunk(elems, 2) {
			h.Set(pair[0], pair[1])
		}
		return h, nil
	}
	z := contents.NewSortedSet()
	for pair := range slices.Chunk(elems, 2) {
		score, ok := contents.ParseDouble(pair[1])
		if !ok {
			return nil, errReply
		}
		z.Set(pair[0], score)
	}
	return z, nil
}

// texts are the strings of a reply.
func texts(reply any) []string {
	elems, _ := reply.([]any)
	all := make([]string, 0, len(elems))
	for _, elem := range elems {
		text, _ := elem.(string)
		all = append(all, text)
	}
	return all
}

// wordsAtOnce is how many words a command gets at the most, beside its name and its key. It is
// even.
const wordsAtOnce = 1000

// writing is how the upstream is made to hold this, whatever it holds before, until its clock tells
// an end; zero: without one.
func writing(key string, content contents.Content, end time.Time) [][]string {
	name, words := making(content)
	commands := [][]string{{"MULTI"}, {"DEL", key}}
	for some := range slices.Chunk(words, wordsAtOnce) {
		commands = append(commands, append([]string{name, key}, some...))
	}
	if !end.IsZero() {
		commands = append(commands, []string{"PEXPIREAT", key, strconv.FormatInt(end.UnixMilli(), 10)})
	}
	return append(commands, []string{"EXEC"})
}

// making is the command that makes a content, and the words that it takes.
func making(content contents.Content) (command string, words []string) {
	switch c := content.(type) {
	case contents.Text:
		return "SET", []string{string(c)}
	case *contents.List:
		return "RPUSH", c.Elems()
	case *contents.Set:
		return "SADD", c.Members()
	case *contents.SortedSet:
		for _, m := range c.Members() {
			words = append(words, contents.FormatDouble(m.Score), m.Member)
		}
		return "ZADD", words
	case *contents.Hash:
		c.Each(func(field, value string) { words = append(words, field, value) })
		return "HSET", words
	}
	return "", nil
}
