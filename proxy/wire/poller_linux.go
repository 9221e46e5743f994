package wire

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Poller is an epoll set of the proxy's own, beside that of Go's scheduler, in which
// the same sockets are. It tells of two things that the other one cannot tell: the
// end of a stream apart from bytes, and what happens on connections for which no
// goroutine waits. The set is itself a descriptor in Go's set, so that waiting for it
// takes a goroutine and no thread.
type Poller struct {
	file   *os.File
	raw    syscall.RawConn
	fd     int
	events [256]syscall.EpollEvent
}

// NewPoller makes an empty set. Errors are those of the system.
func NewPoller() (*Poller, error) {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	if err := syscall.SetNonblock(fd, true); err != nil { // so that Go takes it into its own set
		_ = syscall.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	p := &Poller{file: os.NewFile(uintptr(fd), "epoll"), fd: fd}
	p.raw, err = p.file.SyscallConn()
	if err == nil {
		err = p.file.SetReadDeadline(time.Time{}) // fails if Go did not take it
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Close ends a wait. No connection may be added or changed from then on.
func (p *Poller) Close() error { return p.file.Close() }

// add takes a connection into the set. It leaves the set when it is closed.
func (p *Poller) add(conn syscall.RawConn, t Tag, what interest) error {
	return p.control(syscall.EPOLL_CTL_ADD, conn, t, what)
}

// change has something else told of a connection in the set.
func (p *Poller) change(conn syscall.RawConn, t Tag, what interest) error {
	return p.control(syscall.EPOLL_CTL_MOD, conn, t, what)
}

func (p *Poller) control(op int, conn syscall.RawConn, t Tag, what interest) error {
	event := syscall.EpollEvent{Fd: int32(uint32(t)), Pad: int32(uint32(t >> 32))}
	switch what {
	case theEnd:
		event.Events = syscall.EPOLLRDHUP | unix.EPOLLET // syscall has its sign otherwise on each processor
	case anything:
		event.Events = syscall.EPOLLRDHUP | syscall.EPOLLIN | syscall.EPOLLONESHOT
	}
	var failed error
	err := conn.Control(func(fd uintptr) { failed = syscall.EpollCtl(p.fd, op, int(fd), &event) })
	return errors.Join(err, failed)
}

// Wait tells what has happened, as soon as something has. It returns
// os.ErrDeadlineExceeded when the time is over, and os.ErrClosed after close. What has
// happened by then it tells even where the time was over before: else nothing would ever
// be told to one that is always late.
func (p *Poller) Wait(until time.Time, notify func(t Tag, ended bool)) error {
	_ = p.file.SetReadDeadline(until)
	var n int
	var failed error
	ask := func(uintptr) bool {
		n, failed = p.ask()
		return n != 0 || failed != nil
	}
	err := p.raw.Read(ask)
	over := errors.Is(err, os.ErrDeadlineExceeded)
	if over {
		err = p.raw.Control(func(fd uintptr) { ask(fd) })
	}
	switch {
	case err != nil:
		return os.ErrClosed // there is no other reason
	case failed != nil:
		return os.NewSyscallError("epoll_wait", failed)
	}
	for _, event := range p.events[:n] {
		t := Tag(uint32(event.Fd)) | Tag(uint32(event.Pad))<<32
		notify(t, event.Events&(syscall.EPOLLRDHUP|syscall.EPOLLHUP|syscall.EPOLLERR) != 0)
	}
	if over {
		return os.ErrDeadlineExceeded
	}
	return nil
}

// ask asks the system for events that there are, and waits for none.
func (p *Poller) ask() (n int, err error) {
	for {
		if n, err = syscall.EpollWait(p.fd, p.events[:], 0); err != syscall.EINTR {
			return n, err
		}
	}
}
