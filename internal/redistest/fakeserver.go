package redistest

import "net"

// DialFakeServer returns a connection to a fake server. The server writes one of the replies after
// each of its reads. After the last reply, it reads until the connection ends.
func DialFakeServer(replies ...string) net.Conn {
	client, server := net.Pipe()
	go func() {
		defer server.Close()
		sink := make([]byte, 4096)
		for _, text := range replies {
			_, _ = server.Read(sink)
			_, _ = server.Write([]byte(text))
		}
		for {
			if _, err := server.Read(sink); err != nil {
				return
			}
		}
	}()
	return client
}
