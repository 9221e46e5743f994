package server

import (
	"bytes"
	"slices"

	"redlock-proxy/internal/resp"
)

// appendText appends a text to a bulk or verbatim string. It returns any other reply unchanged.
func appendText(reply []byte, addition string) []byte {
	size, rest, ok := resp.Header(reply)
	if !ok || reply[0] != '$' && reply[0] != '=' || len(rest) < size+2 {
		return reply
	}
	text := rest[:size]
	if size > 0 && !bytes.HasSuffix(text, []byte("txt:")) {
		addition = "\r\n" + addition
	}
	out := resp.AppendHeader(nil, resp.Kind(reply[0]), int64(size+len(addition)))
	return slices.Concat(out, text, []byte(addition+"\r\n"))
}

// appendElements appends n elements, or n pairs of a map, to an aggregate.
func appendElements(reply []byte, n int, addition []byte) []byte {
	count, elements, ok := resp.Header(reply)
	if !ok {
		return reply
	}
	return slices.Concat(resp.AppendHeader(nil, resp.Kind(reply[0]), int64(count+n)), elements, addition)
}
