package move

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"redlock-proxy/commands/lockkeys/keyspace/contents"
	"redlock-proxy/quorum"
)

// typeCommands names the commands for a type of values. size reads the size of a key, read reads its
// whole value, with the words readArgs after the key, and create creates it.
type typeCommands struct {
	size, create, read string
	readArgs           []string
}

// commandsByType holds the types that lock keys on the masters can have, as TYPE names them.
var commandsByType = map[string]typeCommands{
	contents.TextKind.String():      {size: "STRLEN", create: "SET", read: "GET"},
	contents.ListKind.String():      {size: "LLEN", create: "RPUSH", read: "LRANGE", readArgs: []string{"0", "-1"}},
	contents.SetKind.String():       {size: "SCARD", create: "SADD", read: "SMEMBERS"},
	contents.SortedSetKind.String(): {size: "ZCARD", create: "ZADD", read: "ZRANGE", readArgs: []string{"0", "-1", "WITHSCORES"}},
	contents.HashKind.String():      {size: "HLEN", create: "HSET", read: "HGETALL"},
}

// valueCommand returns the command that reads the whole value of a key of a type.
func valueCommand(kind, key string) []string {
	c := commandsByType[kind]
	return append([]string{c.read, key}, c.readArgs...)
}

// errUnexpectedReply is the error for a reply that no Redis sends.
var errUnexpectedReply = errors.New("unexpected reply from the upstream")

// decode returns the content in a reply to valueCommand; nil if the key is absent.
func decode(kind string, reply any) (contents.Content, error) {
	if kind == contents.TextKind.String() {
		text, ok := reply.(string)
		if !ok {
			return nil, nil
		}
		return contents.Text(text), nil
	}
	elems := stringsOf(reply)
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
		return nil, errUnexpectedReply
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
			return nil, errUnexpectedReply
		}
		z.Set(pair[0], score)
	}
	return z, nil
}

// stringsOf returns the strings of an array reply.
func stringsOf(reply any) []string {
	elems, _ := reply.([]any)
	texts := make([]string, 0, len(elems))
	for _, elem := range elems {
		text, _ := elem.(string)
		texts = append(texts, text)
	}
	return texts
}

// maxWordsPerCommand limits the words of a command after its name and key. It is even, because some
// values consist of pairs of words.
const maxWordsPerCommand = 1000

// writeCommands returns the commands that replace a key at the upstream by this content.
func writeCommands(key string, content contents.Content, ttl time.Duration) [][]string {
	name, words := createCommand(content)
	commands := [][]string{{"MULTI"}, {"DEL", key}}
	for chunk := range slices.Chunk(words, maxWordsPerCommand) {
		commands = append(commands, append([]string{name, key}, chunk...))
	}
	if ttl != quorum.NoExpiry {
		commands = append(commands, []string{"PEXPIRE", key, strconv.FormatInt(ttl.Milliseconds(), 10)})
	}
	return append(commands, []string{"EXEC"})
}

// createCommand returns the command that creates a content, and its words after the key.
func createCommand(content contents.Content) (command string, words []string) {
	switch c := content.(type) {
	case contents.Text:
		words = []string{string(c)}
	case *contents.List:
		words = c.Elems()
	case *contents.Set:
		words = c.Members()
	case *contents.SortedSet:
		for _, m := range c.Members() {
			words = append(words, contents.FormatDouble(m.Score), m.Member)
		}
	case *contents.Hash:
		c.Each(func(field, value string) { words = append(words, field, value) })
	}
	return commandsByType[content.Kind().String()].create, words
}
