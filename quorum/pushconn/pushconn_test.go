package pushconn

import (
	"net"
	"testing"

	"redlock-proxy/internal/resp"
)

// TestRefusals checks which errors count as refusals, after which a push connection reconnects less
// often.
func TestRefusals(t *testing.T) {
	for text, want := range map[string]bool{
		"NOPERM this user": true, "ERR unknown command 'HELLO'": true,
		"LOADING Redis is": false, "BUSY Redis is": false, "": false,
	} {
		if IsRefusal(resp.Error(text)) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
	if IsRefusal(net.ErrClosed) {
		t.Error("a connection that ended is a refusal")
	}
}
