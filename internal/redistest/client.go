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

// Client sends commands and raw bytes over one connection to a Redis. It is not safe for concurrent
// use.
type Client struct {
	conn    *net.TCPConn
	reader  *bufio.Reader
	timeout time.Duration
	request []byte // the buffer for requests, reused by Do
}

// Dial connects to addr (host:port). timeout limits this and each later operation; 0 means no
// limit.
func Dial(addr string, timeout time.Duration) (*Client, error) {
	conn, err := net.DialTimeout("tcp", addr, timeout)
	if err != nil {
		return nil, err
	}
	return &Client{conn: conn.(*net.TCPConn), reader: bufio.NewReader(conn), timeout: timeout}, nil
}

// SetTimeout changes the limit of each later operation; 0 means no limit.
func (c *Client) SetTimeout(timeout time.Duration) {
	c.timeout = timeout
	// SetDeadline fails only on a closed connection; the next operation will fail, too.
	_ = c.conn.SetDeadline(time.Time{})
}

// Do sends one command and returns its reply; see ReadReply for the types. It returns an error
// reply as a RespError; err is an error of the connection. If a push comes before the reply, Do
// returns the push; Receive then returns the reply.
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

// ShrinkReceiveBuffer limits the kernel's receive buffer to a few kilobytes.
func (c *Client) ShrinkReceiveBuffer() error { return c.conn.SetReadBuffer(4 << 10) }

// Send writes raw bytes.
func (c *Client) Send(raw []byte) error {
	if err := c.setDeadline(); err != nil {
		return err
	}
	_, err := c.conn.Write(raw)
	return err
}

// WriteUntilBlocked writes raw repeatedly until the other side has read nothing for a second. The
// other side stops reading while the client does not read its replies.
func (c *Client) WriteUntilBlocked(raw []byte) error {
	for {
		if err := c.conn.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
			return err
		}
		if n, err := c.conn.Write(raw); n < len(raw) {
			if errors.Is(err, os.ErrDeadlineExceeded) && n == 0 {
				return nil
			}
			raw = append(raw[n:len(raw):len(raw)], raw[:n]...)
			if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
				return err
			}
		}
	}
}

// Receive reads one reply.
func (c *Client) Receive() (any, error) {
	if err := c.setDeadline(); err != nil {
		return nil, err
	}
	return ReadReply(c.reader)
}

// ReceiveRaw reads exactly n raw bytes.
func (c *Client) ReceiveRaw(n int) ([]byte, error) {
	if err := c.setDeadline(); err != nil {
		return nil, err
	}
	raw := make([]byte, n)
	read, err := io.ReadFull(c.reader, raw)
	return raw[:read], err
}

// ReceiveAll reads all raw bytes up to the end of the connection.
func (c *Client) ReceiveAll() ([]byte, error) {
	if err := c.setDeadline(); err != nil {
		return nil, err
	}
	return io.ReadAll(c.reader)
}

// CloseWrite closes the sending direction; replies can still be read.
func (c *Client) CloseWrite() error { return c.conn.CloseWrite() }

// LocalAddr returns the local host:port, as CLIENT LIST of the server shows it.
func (c *Client) LocalAddr() string { return c.conn.LocalAddr().String() }

// Reset closes the connection with RST.
func (c *Client) Reset() error {
	_ = c.conn.SetLinger(0) // fails on a closed connection only
	return c.Close()
}

// Close closes the connection.
func (c *Client) Close() error { return c.conn.Close() }

// setDeadline sets the deadline of the next operation.
func (c *Client) setDeadline() error {
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
