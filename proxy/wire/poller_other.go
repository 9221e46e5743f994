//go:build !linux

package wire

import (
	"errors"
	"syscall"
	"time"
)

// Poller is for Linux. Elsewhere a goroutine waits for each connection.
type Poller struct{}

// NewPoller returns none.
func NewPoller() (*Poller, error) { return nil, nil }

// Close is never called, nor are the others: there is no Poller here.
func (*Poller) Close() error                                { return nil }
func (*Poller) add(syscall.RawConn, Tag, interest) error    { return errors.ErrUnsupported }
func (*Poller) change(syscall.RawConn, Tag, interest) error { return errors.ErrUnsupported }
func (*Poller) Wait(time.Time, func(Tag, bool)) error       { return errors.ErrUnsupported }
