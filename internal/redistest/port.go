package redistest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// firstPort and lastPort limit the ports of servers. They are below the range that Linux uses for
// outgoing connections (32768 and up). Otherwise a dial to the port of a killed server could get
// the same port as its own. The dial would connect to itself, and keep the server from starting
// again.
const (
	firstPort = 20000
	lastPort  = 32767
	portTries = 50
)

var errNoPort = errors.New("no free port found")

// freePort returns a port on host that is currently free.
func freePort(host string) (int, error) {
	listener, err := ListenFree(host)
	if err != nil {
		return 0, err
	}
	return listener.Addr().(*net.TCPAddr).Port, listener.Close()
}

// FreeAddr returns a host:port of 127.0.0.1 that is currently free. While this process runs, no
// process gets the same port from FreeAddr or ListenFree.
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
