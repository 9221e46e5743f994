package messages

import (
	"errors"
	"strconv"
	"strings"

	"redlock-proxy/quorum/guard/script"
)

// Channel begins the name of the channel on the masters. The prefix of the locks' keys follows.
const Channel = script.OwnPrefix + "messages:"

// Message holds one message of a client, as proxies send it to each other.
type Message struct {
	// Source is the name of the publishing proxy. Number counts its messages, from 1.
	Source string
	Number uint64
	// PreviousNumber is the number of the previous message of the same client; 0: none. That
	// message was decided before this message was sent: a majority of the masters had it, or its
	// client got an error.
	PreviousNumber uint64
	// LastDecided is a number up to which all messages of the source were decided when this message
	// was sent.
	LastDecided uint64
	// Shard is set for a channel of SPUBLISH.
	Shard bool
	// Channel and Payload come from the client's PUBLISH.
	Channel, Payload string
}

const (
	// format is the first word of each message: the version of the format.
	format = "1"
	// sourceSize is the length of the name of a source, in bytes.
	sourceSize = 16
	// MaxSize limits a message, including its channel, in bytes: 1 MB.
	MaxSize = 1 << 20
	// headSize limits the part before the channel and the payload, in bytes.
	headSize = 128
)

// errMalformedMessage means that a text is not a message of a proxy.
var errMalformedMessage = errors.New("it is not a message of a proxy")

// Encode returns the text that the proxy publishes: a line with the numbers of the message,
// followed by the channel and the payload.
func (m Message) Encode() string {
	kind := "m"
	if m.Shard {
		kind = "s"
	}
	b := make([]byte, 0, headSize+len(m.Channel)+len(m.Payload))
	b = append(append(append(b, format+" "...), m.Source...), " "+kind...)
	for _, n := range []uint64{m.Number, m.PreviousNumber, m.LastDecided, uint64(len(m.Channel))} {
		b = strconv.AppendUint(append(b, ' '), n, 10)
	}
	return string(append(append(append(b, '\n'), m.Channel...), m.Payload...))
}

// decode decodes a message. The text may come from any client that may publish on the masters.
func decode(text string) (m Message, err error) {
	head, _, found := strings.Cut(text[:min(len(text), headSize)], "\n")
	words := strings.Split(head, " ")
	if !found || len(words) != 7 || words[0] != format || len(words[1]) != sourceSize ||
		words[2] != "m" && words[2] != "s" {
		return m, errMalformedMessage
	}
	var numbers [4]uint64
	for i := range numbers {
		if numbers[i], err = strconv.ParseUint(words[3+i], 10, 63); err != nil {
			return m, errMalformedMessage
		}
	}
	rest := text[len(head)+1:]
	m = Message{Source: words[1], Shard: words[2] == "s", Number: numbers[0], PreviousNumber: numbers[1], LastDecided: numbers[2]}
	if m.Number == 0 || m.PreviousNumber >= m.Number || m.LastDecided >= m.Number || numbers[3] > uint64(len(rest)) {
		return m, errMalformedMessage
	}
	m.Channel, m.Payload = rest[:numbers[3]], rest[numbers[3]:]
	return m, nil
}
