package redistest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strconv"
)

// These limits keep a broken server from exhausting the memory of a test.
const (
	maxLine  = 64 << 10
	maxBulk  = 512 << 20
	maxItems = 1 << 20
	maxDepth = 32

	smallBlob = 64 << 10 // readFull allocates a blob up to this length before it arrives
)

// ErrReply means that the bytes are not a RESP reply.
var ErrReply = errors.New("not a RESP reply")

// RespError holds an error reply, without the leading '-'. Do and ReadReply return it as a reply,
// not as an error.
type RespError string

// Error returns the text of the reply.
func (e RespError) Error() string { return string(e) }

// Push holds an out-of-band message of RESP3 (pub/sub, invalidation).
type Push []any

// ReadReply reads one reply of RESP2 or RESP3, and returns a Go value that depends on its type:
//
//	string          + $ = (a verbatim string without "txt:")
//	int64           :
//	float64         ,
//	*big.Int        (
//	bool            #
//	RespError       - !
//	nil             _ $-1 *-1
//	[]any           * ~
//	map[string]any  % (keys as fmt.Sprint prints them)
//	Push            >
//
// It skips an attribute (|) and returns the reply after it.
func ReadReply(r *bufio.Reader) (any, error) { return readReply(r, 0) }

func readReply(r *bufio.Reader, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("%w: nested deeper than %d", ErrReply, maxDepth)
	}
	line, err := readLine(r)
	if err != nil {
		return nil, err
	}
	kind, rest := line[0], string(line[1:])
	switch kind {
	case '+':
		return rest, nil
	case '-':
		return RespError(rest), nil
	case ':':
		return parse(strconv.ParseInt(rest, 10, 64))
	case ',':
		return parse(strconv.ParseFloat(rest, 64))
	case '(':
		return readBig(rest)
	case '#':
		return readBool(rest)
	case '_':
		return nil, nil
	case '$', '=', '!':
		return readBlob(r, kind, rest)
	case '*', '~', '>', '%', '|':
		return readAggregate(r, kind, rest, depth)
	}
	return nil, fmt.Errorf("%w: %q", ErrReply, line)
}

// readLine returns one line without its CRLF; it is never empty.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
		if len(line) > maxLine {
			return nil, fmt.Errorf("%w: a line of more than %d bytes", ErrReply, maxLine)
		}
	}
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return nil, fmt.Errorf("%w: line %q", ErrReply, line)
	}
	return line[:len(line)-2], nil
}

// parse returns the value, or the error of parsing it, wrapped in ErrReply.
func parse[T any](value T, err error) (any, error) {
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrReply, err)
	}
	return value, nil
}

func readBig(text string) (any, error) {
	value, ok := new(big.Int).SetString(text, 10)
	if !ok {
		return nil, fmt.Errorf("%w: big number %q", ErrReply, text)
	}
	return value, nil
}

func readBool(text string) (any, error) {
	if text != "t" && text != "f" {
		return nil, fmt.Errorf("%w: boolean %q", ErrReply, text)
	}
	return text == "t", nil
}

// readLength parses the length of a blob or aggregate; -1 means nil.
func readLength(text string, limit int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < -1 || n > limit {
		return 0, fmt.Errorf("%w: length %q", ErrReply, text)
	}
	return n, nil
}

// readBlob reads the rest of a bulk string, verbatim string or bulk error after its length.
func readBlob(r *bufio.Reader, kind byte, length string) (any, error) {
	n, err := readLength(length, maxBulk)
	if err != nil || n < 0 {
		return nil, err
	}
	blob, err := readFull(r, n+2)
	if err != nil {
		return nil, err
	}
	if string(blob[n:]) != "\r\n" {
		return nil, fmt.Errorf("%w: %d bytes are not followed by CRLF", ErrReply, n)
	}
	return blobValue(kind, string(blob[:n]))
}

// readFull reads n bytes. It allocates memory for a large blob only as the bytes arrive.
func readFull(r *bufio.Reader, n int) ([]byte, error) {
	if n <= smallBlob {
		blob := make([]byte, n)
		_, err := io.ReadFull(r, blob)
		return blob, err
	}
	var blob bytes.Buffer
	_, err := io.CopyN(&blob, r, int64(n))
	return blob.Bytes(), err
}

func blobValue(kind byte, text string) (any, error) {
	switch {
	case kind == '!':
		return RespError(text), nil
	case kind == '$':
		return text, nil
	case len(text) < 4 || text[3] != ':':
		return nil, fmt.Errorf("%w: verbatim string %q", ErrReply, text)
	}
	return text[4:], nil
}

func readAggregate(r *bufio.Reader, kind byte, length string, depth int) (any, error) {
	n, err := readLength(length, maxItems)
	if err != nil || n < 0 {
		return nil, err
	}
	if kind == '%' || kind == '|' {
		n *= 2
	}
	var items []any
	for range n { // items grows as data arrives
		item, err := readReply(r, depth+1)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return aggregateValue(r, kind, items, depth)
}

func aggregateValue(r *bufio.Reader, kind byte, items []any, depth int) (any, error) {
	switch kind {
	case '%':
		return pairs(items), nil
	case '|':
		return readReply(r, depth+1)
	case '>':
		return Push(items), nil
	}
	if items == nil {
		items = []any{}
	}
	return items, nil
}

func pairs(items []any) map[string]any {
	m := make(map[string]any, len(items)/2)
	for i := 0; i < len(items); i += 2 {
		m[fmt.Sprint(items[i])] = items[i+1]
	}
	return m
}
