//go:build !linux

package proxy

import (
	"errors"
	"syscall"
	"time"
)

// poller is for Linux. Elsewhere a goroutine waits for each connection.
type poller struct{}

func newPoller() (*poller, error) { return nil, nil }

func (*poller) close() error                                { return nil }
func (*poller) add(syscall.RawConn, tag, interest) error    { return errors.ErrUnsupported }
func (*poller) change(syscall.RawConn, tag, interest) error { return errors.ErrUnsupported }
func (*poller) wait(time.Time, func(tag, bool)) error       { return errors.ErrUnsupported }
