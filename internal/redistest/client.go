package redistest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"time"
)

// Client is one connection that speaks RESP byte by byte as told. It is not meant for concurrent
// use.
type Client struct {
	conn    *net.TCPConn
	reader  *bufio.Reader
	timeout time.Duration
	request []byte // reused
}

// Dial connects to addr (host:port). Each later operation has timeout to finish; 0 means no limit.
func Dial(addr string, timeout time.Duration) (*Client, error) {
	conn, err := net.DialTimeout("tcp", addr, timeout)
	if err != nil {
		return nil, err
	}
	return &Client{conn: conn.(*net.TCPConn), reader: bufio.NewReader(conn), timeout: timeout}, nil
}

// SetTimeout changes the time that each later operation has; 0 means no limit.
func (c *Client) SetTimeout(timeout time.Duration) {
	c.timeout = timeout
	_ = c.conn.SetDeadline(time.Time{}) // fails on a closed connection only, as the next operation will tell
}

// Do sends one command and returns its reply; see ReadReply for the types. An error reply is a
// RespError among the replies, err tells of the connection. Pushes that come before the reply are
// returned like replies: Receive again.
func (c *Client) Do(args ...string) (any, error) {
	c.request = AppendCommand(c.request[:0], args...)
	if err := c.Send(c.request); err != nil {
		return nil, fmt.Errorf("%s: %w", args[0], err)
	}
	reply, err := c.Receive()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", args[0], err)
	}
	return reply, nil
}

// Narrow has the kernel take in few bytes that nobody has read yet.
func (c *Client) Narrow() error { return c.conn.SetReadBuffer(4 << 10) }

// Send writes raw bytes.
func (c *Client) Send(raw []byte) error {
	if err := c.arm(); err != nil {
		return err
	}
	_, err := c.conn.Write(raw)
	return err
}

// Fill writes these bytes again and again, until the other side has taken nothing for a second: it
// does not read, as one does that waits for its own replies to be read.
func (c *Client) Fill(raw []byte) error {
	for {
		if err := c.conn.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
			return err
		}
		if n, err := c.conn.Write(raw); n < len(raw) {
			if errors.Is(err, os.ErrDeadlineExceeded) && n == 0 {
				return nil
			}
			if raw = append(raw[n:len(raw):len(raw)], raw[:n]...); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
				return err
			}
		}
	}
}

// Receive reads one reply.
func (c *Client) Receive() (any, error) {
	if err := c.arm(); err != nil {
		return nil, err
	}
	return ReadReply(c.reader)
}

// ReceiveRaw reads exactly n bytes, as they came.
func (c *Client) ReceiveRaw(n int) ([]byte, error) {
	if err := c.arm(); err != nil {
		return nil, err
	}
	raw := make([]byte, n)
	read, err := io.ReadFull(c.reader, raw)
	return raw[:read], err
}

// ReceiveAll reads, as they came, all bytes up to the end of the connection.
func (c *Client) ReceiveAll() ([]byte, error) {
	if err := c.arm(); err != nil {
		return nil, err
	}
	return io.ReadAll(c.reader)
}

// CloseWrite ends the sending direction alone; replies can still be read.
func (c *Client) CloseWrite() error { return c.conn.CloseWrite() }

// LocalAddr returns this end's host:port, as CLIENT LIST of the server shows it.
func (c *Client) LocalAddr() string { return c.conn.LocalAddr().String() }

// Reset closes the connection with RST.
func (c *Client) Reset() error {
	_ = c.conn.SetLinger(0) // fails on a closed connection only
	return c.Close()
}

// Close closes the connection.
func (c *Client) Close() error { return c.conn.Close() }

// arm sets the deadline of the next operation.
func (c *Client) arm() error {
	if c.timeout == 0 {
		return nil
	}
	return c.conn.SetDeadline(time.Now().Add(c.timeout))
}

// AppendCommand appends args to b as one RESP request (an array of bulk strings).
func AppendCommand(b []byte, args ...string) []byte {
	b = strconv.AppendInt(append(b, '*'), int64(len(args)), 10)
	b = append(b, "\r\n"...)
	for _, arg := range args {
		b = strconv.AppendInt(append(b, '$'), int64(len(arg)), 10)
		b = append(b, "\r\n"...)
		b = append(b, arg...)
		b = append(b, "\r\n"...)
	}
	return b
}
