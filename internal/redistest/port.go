package redistest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Servers get ports below the range that Linux hands out to outgoing connections (32768 and up).
// Otherwise a dial to a killed server's port can be given that very port as its own, connect to
// itself, and keep the server from coming back.
const (
	firstPort = 20000
	lastPort  = 32767
	portTries = 50
)

// errNoPort means that no free port was found.
var errNoPort = errors.New("no free port found")

// freePort returns a port on host that nobody listens on at this moment.
func freePort(host string) (int, error) {
	listener, err := ListenFree(host)
	if err != nil {
		return 0, err
	}
	return listener.Addr().(*net.TCPAddr).Port, listener.Close()
}

// FreeAddr returns a host:port of 127.0.0.1 that nobody listens on at this moment, and that nobody
// else gets from it while this process lives.
func FreeAddr() (string, error) {
	const host = "127.0.0.1"
	port, err := freePort(host)
	return net.JoinHostPort(host, strconv.Itoa(port)), err
}

// ListenFree listens on a free port of host.
func ListenFree(host string) (net.Listener, error) {
	for range portTries {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		switch {
		case err != nil:
		case reserve(port):
			return listener, nil
		default:
			_ = listener.Close()
		}
	}
	return nil, fmt.Errorf("%w on %s between %d and %d", errNoPort, host, firstPort, lastPort)
}
