package quorum

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"redlock-proxy/quorum/guard"
	"redlock-proxy/quorum/master"
	"redlock-proxy/resp"
)

// LookAt connects to a Redis that is no master, such as the upstream or the legacy server, and
// tells what it says of itself. It changes nothing there. One that demands a login, and gets
// none or none that may ask, has a Finding without anything but its name and round trip. It
// may take as long as timeout for each answer; secure is Options.TLS.
func LookAt(ctx context.Context, url string, timeout time.Duration, secure func(*tls.Config)) Finding {
	f := Finding{Name: masterName(url)}
	opts, err := redis.ParseURL(url)
	if err != nil {
		f.Err = err
		return f
	}
	master.LockSettings(opts, timeout, secure)
	opts.DB = 0
	client := redis.NewClient(opts)
	defer client.Close()
	began := time.Now()
	if err := client.Ping(ctx).Err(); err != nil && !isDenied(err) {
		f.Err = errors.New(findingText(err))
		return f
	}
	f.RoundTrip = time.Since(began).Round(time.Microsecond)
	info, err := client.Info(ctx).Result()
	if err != nil {
		return f
	}
	v := guard.ReadInfo(info)
	f.Version, f.Role, f.Policy, f.Uptime, f.runID = v.Version, v.Role, v.Policy, v.Uptime, v.RunID
	return f
}

// IsSameServer reports whether both are the same Redis, by whatever addresses they were
// reached; false also where they do not tell.
func (f Finding) IsSameServer(other Finding) bool {
	return f.runID != "" && f.runID != guard.Untold && f.runID == other.runID
}

// isDenied reports whether a Redis answered that one must log in, or may not do that.
func isDenied(err error) bool {
	return strings.HasPrefix(err.Error(), "NOAUTH ") || strings.HasPrefix(err.Error(), "NOPERM ")
}

// findingText says for an operator why a server could not be asked.
func findingText(err error) string {
	var lookup *net.DNSError
	var record tls.RecordHeaderError
	var malformed *resp.ProtocolError
	text := err.Error()
	switch {
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return "no such host"
	case errors.As(err, &lookup):
		return "its name cannot be looked up: " + lookup.Err
	case errors.As(err, &record):
		return "it speaks no TLS: use redis:// instead of rediss://"
	case strings.HasPrefix(text, "WRONGPASS "):
		return "wrong password: " + text
	case strings.HasPrefix(text, "NOAUTH "):
		return "no password is given, and it demands one: " + text
	case strings.HasPrefix(text, "NOPERM "):
		return "its user may not do what a lock needs: " + text
	case errors.As(err, &malformed):
		return "it is not a Redis: " + text
	case strings.HasPrefix(text, "redis: "):
		return "it is not a Redis: " + strings.TrimPrefix(text, "redis: ")
	default:
		return master.CauseText(err)
	}
}
