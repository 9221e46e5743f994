//go:build !linux

package netconn

import (
	"errors"
	"syscall"
	"time"
)

// Poller exists only on Linux. On other systems a goroutine waits for each connection.
type Poller struct{}

// NewPoller returns nil.
func NewPoller() (*Poller, error) { return nil, nil }

// Close and the following methods are never called, because NewPoller returns nil.
func (*Poller) Close() error                                { return nil }
func (*Poller) add(syscall.RawConn, Tag, interest) error    { return errors.ErrUnsupported }
func (*Poller) change(syscall.RawConn, Tag, interest) error { return errors.ErrUnsupported }
func (*Poller) Wait(time.Time, func(Tag, bool)) error       { return errors.ErrUnsupported }
