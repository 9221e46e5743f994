package main

import (
	"bufio"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"net"
	"strings"
	"sync"

	"redlock-proxy/internal/redistest"
)

var errClosed = errors.New("the connection was closed")

// socket lets many threads share one connection: they write their commands one after the other, and
// get the replies in the same order.
type socket struct {
	conn    net.Conn
	mutex   sync.Mutex // held while writing
	pending chan chan any
}

func dialSocket(addr string) (*socket, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	s := &socket{conn: conn, pending: make(chan chan any, 1000)}
	go s.read()
	return s, nil
}

// read passes each reply to the thread that waits for it, until the connection ends.
func (s *socket) read() {
	for reader := bufio.NewReader(s.conn); ; {
		reply, err := redistest.ReadReply(reader)
		if err != nil {
			reply = errClosed
		}
		for waiter := range s.pending {
			waiter <- reply
			if err == nil {
				break
			}
		}
	}
}

// call sends one command and returns its reply.
func (s *socket) call(words ...string) any {
	s.mutex.Lock()
	replies := s.send(words)
	s.mutex.Unlock()
	return <-replies[0]
}

// send writes commands in one piece. The caller must hold the mutex.
func (s *socket) send(commands ...[]string) []chan any {
	var raw []byte
	var replies []chan any
	for _, words := range commands {
		raw = redistest.AppendCommand(raw, words...)
		replies = append(replies, make(chan any, 1))
	}
	for _, reply := range replies {
		s.pending <- reply
	}
	_, _ = s.conn.Write(raw) // the reader notices errors
	return replies
}

func (s *socket) close() error { return s.conn.Close() }

// toPrintable converts a reply to a printable value.
func toPrintable(reply any) any {
	switch value := reply.(type) {
	case nil:
		return "nil"
	case redistest.RespError:
		return "-" + string(value)
	case error:
		return "failed: " + value.Error()
	}
	return reply
}

// evaluate runs a script by its SHA, and loads the script if the server does not know it.
func evaluate(call func(...string) any, script, key string, arguments ...string) any {
	words := append([]string{"EVALSHA", scriptSHA(script), "1", key}, arguments...)
	reply := call(words...)
	if failure, ok := reply.(redistest.RespError); ok && strings.HasPrefix(string(failure), "NOSCRIPT ") {
		call("SCRIPT", "LOAD", script)
		reply = call(words...)
	}
	return reply
}

func scriptSHA(script string) string {
	sum := sha1.Sum([]byte(script))
	return hex.EncodeToString(sum[:])
}
