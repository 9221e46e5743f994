package redistest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// ReadRaw reads one RESP value, a command or a reply, and returns its raw bytes.
func ReadRaw(r *bufio.Reader) ([]byte, error) { return readRaw(r, nil, 0) }

// readRaw appends the raw bytes of one RESP value to b.
func readRaw(r *bufio.Reader, b []byte, depth int) ([]byte, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("%w: nested deeper than %d", ErrReply, maxDepth)
	}
	head, err := readLine(r)
	if err != nil {
		return nil, err
	}
	b = append(append(b, head...), "\r\n"...)
	switch kind, rest := head[0], string(head[1:]); kind {
	case '+', '-', ':', ',', '(', '#', '_':
		return b, nil
	case '$', '=', '!':
		return readRawBlob(r, b, rest)
	case '*', '~', '>', '%', '|':
		return readRawItems(r, b, kind, rest, depth)
	default:
		return nil, fmt.Errorf("%w: %q", ErrReply, head)
	}
}

func readRawBlob(r *bufio.Reader, b []byte, length string) ([]byte, error) {
	n, err := readLength(length, maxBulk)
	if err != nil || n < 0 {
		return b, err
	}
	blob, err := readFull(r, n+2)
	if err != nil {
		return nil, errors.Join(err, io.ErrUnexpectedEOF)
	}
	return append(b, blob...), nil
}

func readRawItems(r *bufio.Reader, b []byte, kind byte, length string, depth int) ([]byte, error) {
	n, err := readLength(length, maxItems)
	if err != nil || n < 0 {
		return b, err
	}
	switch kind {
	case '%':
		n *= 2
	case '|':
		n = 2*n + 1 // attributes, and the value to which they belong
	}
	for range n {
		if b, err = readRaw(r, b, depth+1); err != nil {
			return nil, err
		}
	}
	return b, nil
}
