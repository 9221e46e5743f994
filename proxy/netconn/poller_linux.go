package netconn

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Poller is the proxy's own epoll set, next to the epoll set of Go's scheduler; both sets contain
// the same sockets. Poller reports two events that Go's set cannot report: the end of a stream
// separately from bytes, and activity on connections for which no goroutine waits. The set is
// itself a descriptor in Go's set, so that a goroutine, not a thread, waits for it.
type Poller struct {
	file    *os.File
	rawConn syscall.RawConn
	fd      int
	events  [256]syscall.EpollEvent
}

// NewPoller returns an empty set, or an error of the system.
func NewPoller() (*Poller, error) {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	if err := syscall.SetNonblock(fd, true); err != nil { // Go adds only a nonblocking fd
		_ = syscall.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	p := &Poller{file: os.NewFile(uintptr(fd), "epoll"), fd: fd}
	p.rawConn, err = p.file.SyscallConn()
	if err == nil {
		err = p.file.SetReadDeadline(time.Time{}) // fails if Go has not added fd
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Close ends a Wait. No connection may be added or changed afterwards.
func (p *Poller) Close() error { return p.file.Close() }

// add adds a connection to the set. The system removes the connection when it is closed.
func (p *Poller) add(conn syscall.RawConn, t Tag, event interest) error {
	return p.control(syscall.EPOLL_CTL_ADD, conn, t, event)
}

// change sets the event that the poller reports for a connection in the set.
func (p *Poller) change(conn syscall.RawConn, t Tag, event interest) error {
	return p.control(syscall.EPOLL_CTL_MOD, conn, t, event)
}

func (p *Poller) control(op int, conn syscall.RawConn, t Tag, kind interest) error {
	event := syscall.EpollEvent{Fd: int32(uint32(t)), Pad: int32(uint32(t >> 32))}
	switch kind {
	case streamEnd:
		// Package syscall's EPOLLET has a different sign on some processors.
		event.Events = syscall.EPOLLRDHUP | unix.EPOLLET
	case readable:
		event.Events = syscall.EPOLLRDHUP | syscall.EPOLLIN | syscall.EPOLLONESHOT
	}
	var ctlErr error
	err := conn.Control(func(fd uintptr) { ctlErr = syscall.EpollCtl(p.fd, op, int(fd), &event) })
	return errors.Join(err, ctlErr)
}

// Wait waits for events, and passes them to notify. It returns os.ErrDeadlineExceeded if the
// deadline has passed, and os.ErrClosed after Close. It reports present events even after the
// deadline, because the caller may always be late.
func (p *Poller) Wait(deadline time.Time, notify func(t Tag, ended bool)) error {
	_ = p.file.SetReadDeadline(deadline)
	var n int
	var pollErr error
	pollOnce := func(uintptr) bool {
		n, pollErr = p.poll()
		return n != 0 || pollErr != nil
	}
	err := p.rawConn.Read(pollOnce)
	timedOut := errors.Is(err, os.ErrDeadlineExceeded)
	if timedOut {
		err = p.rawConn.Control(func(fd uintptr) { pollOnce(fd) })
	}
	switch {
	case err != nil:
		return os.ErrClosed // only Close causes these errors
	case pollErr != nil:
		return os.NewSyscallError("epoll_wait", pollErr)
	}
	for _, event := range p.events[:n] {
		t := Tag(uint32(event.Fd)) | Tag(uint32(event.Pad))<<32
		notify(t, event.Events&(syscall.EPOLLRDHUP|syscall.EPOLLHUP|syscall.EPOLLERR) != 0)
	}
	if timedOut {
		return os.ErrDeadlineExceeded
	}
	return nil
}

// poll returns the current events, without waiting.
func (p *Poller) poll() (n int, err error) {
	for {
		if n, err = syscall.EpollWait(p.fd, p.events[:], 0); err != syscall.EINTR {
			return n, err
		}
	}
}
