package contents

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
)

// mark begins a string that is not the text that it seems to be; a letter for its kind follows.
const (
	mark     = "\x00redlock:"
	markSize = len(mark) + 1
)

// kinds are the kinds by number: their names, the letters after the mark, and how what follows is
// read. The letters are in what masters keep, and never change.
var kinds = [...]struct {
	name   string
	letter byte
	decode func(rest string) (Content, error)
}{
	TextKind:      {"string", 't', decodeText},
	ListKind:      {"list", 'l', decodeList},
	SetKind:       {"set", 's', decodeSet},
	SortedSetKind: {"zset", 'z', decodeSortedSet},
	HashKind:      {"hash", 'h', decodeHash},
}

// ErrUnreadable says that a string is marked and yet none that Encode makes.
var ErrUnreadable = errors.New("contents: not what any proxy of this version has written")

// IsMarked reports whether a string for the quorum is more than a plain text.
func IsMarked(encoded string) bool { return strings.HasPrefix(encoded, mark) }

// EncodeText is Encode of a text, which mostly is the text itself.
func EncodeText(text string) string {
	if IsMarked(text) {
		return mark + "t" + text
	}
	return text
}

// Encode is the content as one string. Equal contents give equal strings.
func Encode(c Content) string {
	if text, ok := c.(Text); ok {
		return EncodeText(string(text))
	}
	b := append(make([]byte, 0, c.Size()), mark...)
	b = append(b, kinds[c.Kind()].letter)
	return string(c.appendTo(b))
}

// Decode is the content of a string that Encode made. Of any other one that is marked the error is
// ErrUnreadable.
func Decode(encoded string) (Content, error) {
	if !IsMarked(encoded) {
		return Text(encoded), nil
	}
	for _, k := range kinds {
		if rest, is := strings.CutPrefix(encoded[len(mark):], string(k.letter)); is {
			return k.decode(rest)
		}
	}
	return nil, ErrUnreadable
}

// decodeText is a text that begins as only a collection may.
func decodeText(text string) (Content, error) {
	if !IsMarked(text) {
		return nil, ErrUnreadable
	}
	return Text(text), nil
}

// KindName is the name that TYPE has for a string that Encode made; empty for what no Encode has
// made.
func KindName(encoded string) string {
	if !IsMarked(encoded) {
		return TextKind.String()
	}
	for _, k := range kinds {
		if strings.HasPrefix(encoded[len(mark):], string(k.letter)) {
			return k.name
		}
	}
	return ""
}

// partSize is how many bytes a part has with its length.
func partSize(part string) int {
	n := 1
	for rest := len(part) >> 7; rest > 0; rest >>= 7 {
		n++
	}
	return n + len(part)
}

func appendPart(b []byte, part string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(part))), part...)
}

// cutPart takes the first part off a string. ok is false where there is none, or its length is not
// written in the shortest way.
func cutPart(s string) (part, rest string, ok bool) {
	size := uint64(0)
	for i := 0; i < len(s) && i < binary.MaxVarintLen32; i++ {
		size |= uint64(s[i]&0x7f) << (7 * i)
		if s[i] >= 0x80 {
			continue
		}
		s = s[i+1:]
		if i > 0 && size>>(7*i) == 0 || size > uint64(len(s)) {
			return "", "", false
		}
		return s[:size], s[size:], true
	}
	return "", "", false
}

// countParts counts the parts of a string, each after a head of so many bytes, up to where it ends
// or is wrong.
func countParts(s string, head int) (n int) {
	for len(s) > head {
		_, rest, ok := cutPart(s[head:])
		if !ok {
			break
		}
		s = rest
		n++
	}
	return n
}

const scoreSize = 8

func appendScore(b []byte, score float64) []byte {
	return binary.BigEndian.AppendUint64(b, math.Float64bits(score))
}

// cutScore takes a score off a string.
func cutScore(s string) (score float64, rest string, ok bool) {
	if len(s) < scoreSize {
		return 0, "", false
	}
	score = math.Float64frombits(binary.BigEndian.Uint64([]byte(s[:scoreSize])))
	return score, s[scoreSize:], !math.IsNaN(score) && math.Float64bits(score) != math.Float64bits(math.Copysign(0, -1))
}
