package contents

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
)

// mark begins the string of a collection, of holders or of a marked text. The letter of the type
// follows the mark.
const (
	mark     = "\x00redlock:"
	markSize = len(mark) + 1
)

// kinds holds the names of the types, their letters after the mark, and their decoders. The letters
// are part of the values on the masters, and never change.
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

	HoldersKind:    {"lock", 'm', decodeHolders(HoldersKind)},
	LoneHolderKind: {"lock", 'o', decodeHolders(LoneHolderKind)},
}

// ErrUnreadable is the error for a string that has the mark, but that Encode does not make.
var ErrUnreadable = errors.New("this version of the proxy does not know the format of the value; upgrade the proxy")

// IsMarked reports whether an encoded value begins with the mark: it is a collection, holders, or a
// marked text.
func IsMarked(encoded string) bool { return strings.HasPrefix(encoded, mark) }

// EncodeText encodes a text. It returns most texts unchanged.
func EncodeText(text string) string {
	if IsMarked(text) {
		return mark + "t" + text
	}
	return text
}

// Encode returns a content as one string. Equal contents give equal strings.
func Encode(c Content) string {
	if text, ok := c.(Text); ok {
		return EncodeText(string(text))
	}
	b := append(make([]byte, 0, c.Size()), mark...)
	b = append(b, kinds[c.Kind()].letter)
	return string(c.appendTo(b))
}

// Decode returns the content of a string that Encode made. The error for any other marked string is
// ErrUnreadable.
func Decode(encoded string) (Content, error) {
	if !IsMarked(encoded) {
		return Text(encoded), nil
	}
	for _, k := range kinds {
		if rest, ok := strings.CutPrefix(encoded[len(mark):], string(k.letter)); ok {
			return k.decode(rest)
		}
	}
	return nil, ErrUnreadable
}

// decodeText decodes a text that begins like a collection.
func decodeText(text string) (Content, error) {
	if !IsMarked(text) {
		return nil, ErrUnreadable
	}
	return Text(text), nil
}

// decodeHolders returns the decoder of a kind of holders, which does not read them.
func decodeHolders(kind Kind) func(string) (Content, error) {
	return func(rest string) (Content, error) { return Holders{kind, rest}, nil }
}

// KindName returns the type of an encoded value, as TYPE returns it, or "" for a marked value with
// an unknown letter.
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

// partSize returns the bytes of a part with its length prefix.
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

// cutPart returns the first part of a string and the rest. ok is false if the part is incomplete,
// or if its length is not encoded in the shortest way.
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

// countParts counts the parts of a string up to its end or its first error. head bytes precede each
// part.
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

// cutScore returns the score at the beginning of a string, and the rest.
func cutScore(s string) (score float64, rest string, ok bool) {
	if len(s) < scoreSize {
		return 0, "", false
	}
	score = math.Float64frombits(binary.BigEndian.Uint64([]byte(s[:scoreSize])))
	return score, s[scoreSize:], !math.IsNaN(score) && math.Float64bits(score) != math.Float64bits(math.Copysign(0, -1))
}
