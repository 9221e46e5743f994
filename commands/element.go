package commands

import (
	"bytes"
	"fmt"
	"strconv"
)

// appendText appends to the text in a bulk or verbatim string. A reply of another
// kind stays.
func appendText(reply []byte, more string) []byte {
	head, size, ok := header(reply)
	if !ok || reply[0] != '$' && reply[0] != '=' || len(reply) < head+size+2 {
		return reply
	}
	text := reply[head : head+size]
	if size > 0 && !bytes.HasSuffix(text, []byte("txt:")) {
		more = "\r\n" + more
	}
	return fmt.Appendf(nil, "%c%d\r\n%s%s\r\n", reply[0], size+len(more), text, more)
}

// appendElements appends n elements (or pairs, to a map) to an aggregate.
func appendElements(reply []byte, n int, more []byte) []byte {
	head, count, ok := header(reply)
	if !ok {
		return reply
	}
	out := fmt.Appendf(nil, "%c%d\r\n", reply[0], count+n)
	out = append(out, reply[head:]...)
	return append(out, more...)
}

// header reads the first line of a reply: its length, and the number in it.
func header(reply []byte) (size, n int, ok bool) {
	end := bytes.Index(reply, []byte("\r\n"))
	if end < 1 {
		return 0, 0, false
	}
	n, err := strconv.Atoi(string(reply[1:end]))
	return end + 2, n, err == nil && n >= 0
}

// elementSize is how many bytes the first element takes; 0 if it is not whole.
func elementSize(p []byte) int {
	end := bytes.Index(p, []byte("\r\n"))
	if end < 1 {
		return 0
	}
	size := end + 2
	n, err := strconv.Atoi(string(p[1:end]))
	children := 0
	switch p[0] {
	case '$', '=', '!':
		if err == nil && n >= 0 {
			size += n + 2
		}
	case '*', '~', '>':
		children = n
	case '%':
		children = 2 * n
	}
	for range max(0, children) {
		child := elementSize(p[min(size, len(p)):])
		if child == 0 {
			return 0
		}
		size += child
	}
	return min(size, len(p))
}
