package faultlink

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"redlock-proxy/internal/redistest"
)

// echoServer starts a server that sends all bytes back, and closes a connection when the client
// closes it.
func echoServer(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	var tasks sync.WaitGroup
	tasks.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			tasks.Go(func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		tasks.Wait()
	})
	return listener.Addr().String()
}

// newLink returns a link to an echo server; goleak checks that Close ends all goroutines.
func newLink(t *testing.T) *Link {
	t.Helper()
	ignore := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, ignore) })
	link, err := New(echoServer(t))
	check(t, err)
	t.Cleanup(func() { check(t, link.Close()) })
	return link
}

// wantEcho sends a line and requires its echo.
func wantEcho(t *testing.T, client *redistest.Client, text string) {
	t.Helper()
	check(t, client.Send([]byte("+"+text+"\r\n")))
	if reply, err := client.Receive(); err != nil || reply != text {
		t.Fatalf("%v, %v; want %s", reply, err, text)
	}
}

func TestLinkForwardsBothWaysToTheEnd(t *testing.T) {
	client := dial(t, newLink(t).Addr())
	wantEcho(t, client, "hello")
	check(t, client.Send([]byte("bye")))
	check(t, client.CloseWrite())
	if rest, err := client.ReceiveAll(); err != nil || string(rest) != "bye" {
		t.Fatalf("%q, %v; want bye and the end", rest, err)
	}
}

func TestLinkCutAndHeal(t *testing.T) {
	link := newLink(t)
	old := dial(t, link.Addr())
	wantEcho(t, old, "before")
	check(t, link.Cut())
	check(t, link.Cut())
	check(t, old.Send([]byte("+late\r\n")))
	wantSilence(t, old)
	fresh := dial(t, link.Addr()) // the kernel accepts
	check(t, fresh.Send([]byte("+fresh\r\n")))
	wantSilence(t, fresh)
	check(t, link.Heal())
	for client, text := range map[*redistest.Client]string{old: "late", fresh: "fresh"} {
		if reply, err := client.Receive(); err != nil || reply != text {
			t.Fatalf("%v, %v after Heal; want %s", reply, err, text)
		}
	}
}

// TestLinkCutsOneDirection checks that a cut of one direction does not affect the other direction.
func TestLinkCutsOneDirection(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer listener.Close()
	link, err := New(listener.Addr().String())
	check(t, err)
	defer link.Close()
	client, err := net.Dial("tcp", link.Addr())
	check(t, err)
	defer client.Close()
	server, err := listener.Accept()
	check(t, err)
	defer server.Close()
	from, to := [2]net.Conn{client, server}, [2]net.Conn{server, client}
	for cutDirection, cut := range []func() error{link.CutRequests, link.CutReplies} {
		check(t, cut())
		for direction := range from {
			_, err := from[direction].Write([]byte("x"))
			check(t, err)
		}
		check(t, readByte(to[1-cutDirection], waitLimit))
		if err := readByte(to[cutDirection], quietTime); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("cut %d: %v; want silence", cutDirection, err)
		}
		check(t, link.Heal())
		check(t, readByte(to[cutDirection], waitLimit))
	}
}

// readByte reads one byte within a time.
func readByte(conn net.Conn, limit time.Duration) error {
	if err := conn.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	_, err := conn.Read(make([]byte, 1))
	return err
}

// TestLinkCutStopsEveryByte checks that a stream that is cut at full speed continues after Heal
// without a lost or repeated byte.
func TestLinkCutStopsEveryByte(t *testing.T) {
	link := newLink(t)
	client := dial(t, link.Addr())
	const size = 16 << 20
	var sender sync.WaitGroup
	sender.Go(func() {
		for sent := 0; sent < size; sent += len(pattern) {
			if err := client.Send(pattern); err != nil {
				t.Error(err)
				return
			}
		}
	})
	defer sender.Wait()
	for received := 0; received < size; received += len(pattern) {
		if received == size/2 {
			check(t, link.Cut())
			time.AfterFunc(quietTime, func() { _ = link.Heal() })
		}
		if raw, err := client.ReceiveRaw(len(pattern)); err != nil || string(raw) != string(pattern) {
			t.Fatalf("byte %d and on: %v, same: %v", received, err, string(raw) == string(pattern))
		}
	}
}

// pattern is a part of a stream in which a test detects lost and repeated bytes.
var pattern = func() []byte {
	b := make([]byte, 1<<16)
	for i := range b {
		b[i] = byte(i % 251)
	}
	return b
}()

// TestLinkCutWithAStuckWriter checks that Cut does not wait for a write that never ends because the
// receiver does not read.
func TestLinkCutWithAStuckWriter(t *testing.T) {
	link := newLink(t)
	client := dial(t, link.Addr())
	client.SetTimeout(4 * quietTime)
	for client.Send(pattern) == nil { // until all buffers are full
	}
	cut := make(chan error)
	go func() { cut <- link.Cut() }()
	select {
	case err := <-cut:
		check(t, err)
	case <-time.After(waitLimit):
		t.Fatal("Cut hangs")
	}
}

// TestLinkCutDelaysClose checks that a peer's close does not arrive while the link is cut.
func TestLinkCutDelaysClose(t *testing.T) {
	link := newLink(t)
	client := dial(t, link.Addr())
	wantEcho(t, client, "before")
	check(t, link.Cut())
	check(t, client.CloseWrite()) // the server would close its side, too
	wantSilence(t, client)
	check(t, link.Heal())
	if rest, err := client.ReceiveAll(); err != nil || len(rest) != 0 {
		t.Fatalf("%q, %v after Heal; want the end", rest, err)
	}
}

func TestLinkRefuseAndHeal(t *testing.T) {
	link := newLink(t)
	client := dial(t, link.Addr())
	wantEcho(t, client, "before")
	check(t, link.Refuse())
	if _, err := client.Receive(); !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("%v; want a reset", err)
	}
	if _, err := redistest.Dial(link.Addr(), waitLimit); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("%v; want it refused", err)
	}
	check(t, link.Heal())
	wantEcho(t, dial(t, link.Addr()), "after")
}

func TestLinkResetSparesNewConnections(t *testing.T) {
	link := newLink(t)
	client := dial(t, link.Addr())
	wantEcho(t, client, "before")
	link.Reset()
	if _, err := client.Receive(); !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("%v; want a reset", err)
	}
	wantEcho(t, dial(t, link.Addr()), "after")
}

func TestLinkResetsWithoutTarget(t *testing.T) {
	port, err := redistest.ListenFree("127.0.0.1")
	check(t, err)
	check(t, port.Close())
	link, err := New(port.Addr().String())
	check(t, err)
	defer link.Close()
	client, err := redistest.Dial(link.Addr(), waitLimit)
	if err == nil { // otherwise the reset came before Dial returned
		defer client.Close()
		_, err = client.Receive()
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("%v; want a reset", err)
	}
}

func TestLinkClosed(t *testing.T) {
	link := newLink(t)
	check(t, link.Cut())
	client := dial(t, link.Addr())
	check(t, link.Close())
	check(t, link.Close())
	if _, err := client.Receive(); err == nil {
		t.Error("a connection outlives its link")
	}
	for name, do := range map[string]func() error{"Cut": link.Cut, "Heal": link.Heal, "Refuse": link.Refuse} {
		if err := do(); !errors.Is(err, errLinkClosed) {
			t.Errorf("%s after Close: %v; want %v", name, err, errLinkClosed)
		}
	}
}
