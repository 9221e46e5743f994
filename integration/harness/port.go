package harness

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Servers get ports below the range that Linux hands out to outgoing connections (32768 and up). Otherwise a dial to a killed
// server's port can be given that very port as its own, connect to itself, and keep the server from coming back.
const (
	firstPort = 20000
	lastPort  = 32767
	portTries = 50
)

// errNoPort means that no free port was found.
var errNoPort = errors.New("no free port found")

// freePort returns a port on host that nobody listens on at this moment.
func freePort(host string) (int, error) {
	for range portTries {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err == nil {
			return port, listener.Close()
		}
	}
	return 0, fmt.Errorf("%w on %s between %d and %d", errNoPort, host, firstPort, lastPort)
}

// FreeAddr returns a host:port of 127.0.0.1 that nobody listens on at this moment; another process may take it any time.
func FreeAddr() (string, error) {
	const host = "127.0.0.1"
	port, err := freePort(host)
	return net.JoinHostPort(host, strconv.Itoa(port)), err
}

// listenFree listens on a free port of host.
func listenFree(host string) (net.Listener, error) {
	port, err := freePort(host)
	if err != nil {
		return nil, err
	}
	return net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
}
