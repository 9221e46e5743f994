package redistest

import "net"

// FakeServer returns a connection to a fake server. The server writes each text after it has read
// some bytes, then reads until the connection ends.
func FakeServer(says ...string) net.Conn {
	ours, theirs := net.Pipe()
	go func() {
		defer theirs.Close()
		sink := make([]byte, 4096)
		for _, text := range says {
			_, _ = theirs.Read(sink)
			_, _ = theirs.Write([]byte(text))
		}
		for {
			if _, err := theirs.Read(sink); err != nil {
				return
			}
		}
	}()
	return ours
}
