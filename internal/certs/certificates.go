package certs

import (
	"crypto/tls"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Files are the paths of the PEM files that settings of the same names hold. Empty is none.
type Files struct {
	// TLSCert and TLSKey are what clients are shown; TLSClientCA has the authorities of their
	// certificates.
	TLSCert, TLSKey, TLSClientCA string
	// ClientCert and ClientKey are what servers are shown; CA has the authorities of theirs, beside
	// the system's.
	ClientCert, ClientKey, CA string
}

// Certificates are what the files hold. Any goroutine may use them.
type Certificates struct{ current atomic.Pointer[contents] }

// Load reads the files. An error names the setting and the file.
func Load(files Files) (*Certificates, error) {
	read, err := files.read()
	if err != nil {
		return nil, err
	}
	c := &Certificates{}
	c.current.Store(read)
	return c, nil
}

// Prepare reads files, which may be others than before, and gives what has them be used; renewed
// are the settings whose certificates are others than those in use. If a file is missing or broken,
// or a certificate that was not in use before is out of its time, the error names what is wrong.
func (c *Certificates) Prepare(files Files, now time.Time) (use func(), renewed []string, err error) {
	read, err := files.read()
	if err != nil {
		return nil, nil, err
	}
	before := c.current.Load()
	err = errors.Join(
		untimely("tls-cert", files.TLSCert, unlike(read.own, before.own), now),
		untimely("client-cert", files.ClientCert, unlike(read.shown, before.shown), now),
	)
	if err != nil {
		return nil, nil, err
	}
	return func() { c.current.Store(read) }, read.unlike(before), nil
}

// unlike are the settings that hold other certificates than before.
func (c *contents) unlike(before *contents) (settings []string) {
	for _, setting := range []struct {
		name string
		same bool
	}{
		{"tls-cert", (c.own == nil) == (before.own == nil) && unlike(c.own, before.own) == nil},
		{"tls-client-ca", c.clients.Equal(before.clients)},
		{"client-cert", (c.shown == nil) == (before.shown == nil) && unlike(c.shown, before.shown) == nil},
		{"ca", c.roots.Equal(before.roots)},
	} {
		if !setting.same {
			settings = append(settings, setting.name)
		}
	}
	return settings
}

// unlike is a certificate, or nil if it is the same as before.
func unlike(now, before *tls.Certificate) *tls.Certificate {
	if now != nil && before != nil && now.Leaf.Equal(before.Leaf) {
		return nil
	}
	return now
}

// Untimely says which certificate has expired, or is not valid yet; nil: none.
func (c *Certificates) Untimely(now time.Time) error {
	held := c.current.Load()
	return errors.Join(
		untimely("tls-cert", held.files.TLSCert, held.own, now),
		untimely("client-cert", held.files.ClientCert, held.shown, now),
	)
}

// Until is when the certificate that clients are shown expires; zero without one.
func (c *Certificates) Until() time.Time {
	if own := c.current.Load().own; own != nil {
		return own.Leaf.NotAfter
	}
	return time.Time{}
}

// Listener are the TLS settings towards clients as the files say now, or nil if clients speak none.
func (c *Certificates) Listener() *tls.Config {
	held := c.current.Load()
	if held.own == nil {
		return nil
	}
	return held.listener()
}

// Dialing adds to the TLS settings of a connection that is about to be made: whom to believe, and
// what to show.
func (c *Certificates) Dialing(config *tls.Config) {
	now := c.current.Load()
	if now.roots != nil {
		config.RootCAs = now.roots
	}
	if now.shown != nil {
		config.Certificates = []tls.Certificate{*now.shown}
	}
}

// Probing are the TLS settings with which a program of the same configuration asks the listener for
// a sign of life. Whose certificate that has does not count: nothing that is secret is sent, and
// nothing but a sign of life is believed. Nor do files that are broken, since the listener may
// still have what they held. It is nil if clients speak no TLS.
func Probing(files Files) *tls.Config {
	if files.TLSCert == "" {
		return nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}
	read, err := files.read()
	switch {
	case err != nil:
	case read.shown != nil:
		config.Certificates = []tls.Certificate{*read.shown}
	default:
		config.Certificates = []tls.Certificate{*read.own} // mostly good for both sides
	}
	return config
}

func untimely(setting, path string, pair *tls.Certificate, now time.Time) error {
	switch {
	case pair == nil:
		return nil
	case now.After(pair.Leaf.NotAfter):
		return fmt.Errorf("%s: %s: the certificate expired at %s", setting, path, pair.Leaf.NotAfter.Format(time.RFC3339))
	case now.Before(pair.Leaf.NotBefore):
		return fmt.Errorf("%s: %s: the certificate is not valid before %s", setting, path, pair.Leaf.NotBefore.Format(time.RFC3339))
	}
	return nil
}
