package quorum

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// unreachable says for an operator why a server could not be asked; also where it expects TLS and the URL has none, or the other way
// round, of which the failed connection itself does not tell.
func unreachable(ctx context.Context, url string, timeout time.Duration, err error) error {
	text := findingText(err)
	switch text {
	case "no answer in time", "connection reset", "connection closed":
		if other := otherScheme(ctx, url, timeout); other != "" {
			text = other
		}
	}
	return errors.New(text)
}

// otherScheme tries a server the other way, and sends it nothing but a PING. It returns what to do if that goes well.
func otherScheme(ctx context.Context, url string, timeout time.Duration) string {
	opts, err := redis.ParseURL(url)
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, opts.Network, opts.Addr)
	if err != nil {
		return ""
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(timeout))
	if opts.TLSConfig == nil {
		whoever := &tls.Config{InsecureSkipVerify: true} // only that it speaks TLS is asked
		if tls.Client(conn, whoever).HandshakeContext(ctx) == nil {
			return "it speaks TLS: use rediss:// instead of redis://"
		}
		return ""
	}
	var first [1]byte
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return ""
	}
	if _, err := conn.Read(first[:]); err == nil && (first[0] == '+' || first[0] == '-') {
		return "it speaks no TLS: use redis:// instead of rediss://"
	}
	return ""
}
