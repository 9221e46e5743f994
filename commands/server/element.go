package server

import (
	"bytes"
	"slices"

	"redlock-proxy/internal/resp"
)

// appendText appends to a bulk or verbatim string. It returns any other reply unchanged.
func appendText(reply []byte, more string) []byte {
	size, rest, ok := resp.Header(reply)
	if !ok || reply[0] != '$' && reply[0] != '=' || len(rest) < size+2 {
		return reply
	}
	text := rest[:size]
	if size > 0 && !bytes.HasSuffix(text, []byte("txt:")) {
		more = "\r\n" + more
	}
	out := resp.AppendHeader(nil, resp.Kind(reply[0]), int64(size+len(more)))
	return slices.Concat(out, text, []byte(more+"\r\n"))
}

// appendElements appends n elements, or n pairs of a map, to an aggregate.
func appendElements(reply []byte, n int, more []byte) []byte {
	count, elements, ok := resp.Header(reply)
	if !ok {
		return reply
	}
	return slices.Concat(resp.AppendHeader(nil, resp.Kind(reply[0]), int64(count+n)), elements, more)
}
