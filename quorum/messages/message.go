package messages

import (
	"errors"
	"strconv"
	"strings"

	"redlock-proxy/quorum/guard/script"
)

// Channel is what the name of the masters' channel begins with, before the prefix of the locks'
// keys.
const Channel = script.OwnPrefix + "messages:"

// Message is one message of a client, on its way between proxies.
type Message struct {
	// Source is the proxy that published it, and Number which of its messages it is, from 1 on.
	Source string
	Number uint64
	// After is the number of the message that the same client published before it; 0: none. That
	// one was decided before this one was sent: a majority of the masters had it, or its client got
	// an error.
	After uint64
	// Decided is a number up to which all of the source were, when this one was sent.
	Decided uint64
	// Shard is set for a channel of SPUBLISH.
	Shard bool
	// Channel and Payload are the client's.
	Channel, Payload string
}

const (
	// format is the first word of each message: that of this version.
	format = "1"
	// sourceSize is how long the name of a source is, in bytes.
	sourceSize = 16
	// MaxSize bounds a message, with its channel: 1 MB, in bytes.
	MaxSize = 1 << 20
	// headSize bounds what is before channel and payload.
	headSize = 128
)

// errMalformed is what is no message of a proxy.
var errMalformed = errors.New("it is no message of a proxy")

// Encode is the message as it goes over a master's channel: a line of its numbers, the channel, the
// payload.
func (m Message) Encode() string {
	kind := "m"
	if m.Shard {
		kind = "s"
	}
	b := make([]byte, 0, headSize+len(m.Channel)+len(m.Payload))
	b = append(append(append(b, format+" "...), m.Source...), " "+kind...)
	for _, n := range []uint64{m.Number, m.After, m.Decided, uint64(len(m.Channel))} {
		b = strconv.AppendUint(append(b, ' '), n, 10)
	}
	return string(append(append(append(b, '\n'), m.Channel...), m.Payload...))
}

// decode reads a message. Whoever may publish on the masters' channel can have sent anything.
func decode(text string) (m Message, err error) {
	head, _, found := strings.Cut(text[:min(len(text), headSize)], "\n")
	words := strings.Split(head, " ")
	if !found || len(words) != 7 || words[0] != format || len(words[1]) != sourceSize || words[2] != "m" && words[2] != "s" {
		return m, errMalformed
	}
	var numbers [4]uint64
	for i := range numbers {
		if numbers[i], err = strconv.ParseUint(words[3+i], 10, 63); err != nil {
			return m, errMalformed
		}
	}
	rest := text[len(head)+1:]
	m = Message{Source: words[1], Shard: words[2] == "s", Number: numbers[0], After: numbers[1], Decided: numbers[2]}
	if m.Number == 0 || m.After >= m.Number || m.Decided >= m.Number || numbers[3] > uint64(len(rest)) {
		return m, errMalformed
	}
	m.Channel, m.Payload = rest[:numbers[3]], rest[numbers[3]:]
	return m, nil
}
