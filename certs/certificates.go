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
	// TLSCert and TLSKey are what clients are shown; TLSClientCA has the authorities of their certificates.
	TLSCert, TLSKey, TLSClientCA string
	// ClientCert and ClientKey are what servers are shown; CA has the authorities of theirs, beside the system's.
	ClientCert, ClientKey, CA string
}

// Certificates are what the files hold. Any goroutine may use them.
type Certificates struct {
	files   Files
	current atomic.Pointer[contents]
}

// Load reads the files. An error names the setting and the file.
func Load(files Files) (*Certificates, error) {
	read, err := files.read()
	if err != nil {
		return nil, err
	}
	c := &Certificates{files: files}
	c.current.Store(read)
	return c, nil
}

// Any reports whether there is a file at all.
func (c *Certificates) Any() bool { return c.files != Files{} }

// Reload reads the files again. If one is missing or broken, or a certificate in it is out of its time, all stays as it was; the
// error names what is wrong.
func (c *Certificates) Reload(now time.Time) error {
	read, err := c.files.read()
	if err == nil {
		err = c.files.untimely(read, now)
	}
	if err == nil {
		c.current.Store(read)
	}
	return err
}

// Untimely says which certificate has expired, or is not valid yet; nil: none.
func (c *Certificates) Untimely(now time.Time) error { return c.files.untimely(c.current.Load(), now) }

// Until is when the certificate that clients are shown expires; zero without one.
func (c *Certificates) Until() time.Time {
	if own := c.current.Load().own; own != nil {
		return own.Leaf.NotAfter
	}
	return time.Time{}
}

// Listener are the TLS settings towards clients, or nil if they speak none. They follow each Reload.
func (c *Certificates) Listener() *tls.Config {
	if c.files.TLSCert == "" {
		return nil
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.current.Load().listener(), nil },
	}
}

// Dialing adds to the TLS settings of a connection that is about to be made: whom to believe, and what to show.
func (c *Certificates) Dialing(config *tls.Config) {
	now := c.current.Load()
	if now.roots != nil {
		config.RootCAs = now.roots
	}
	if now.shown != nil {
		config.Certificates = []tls.Certificate{*now.shown}
	}
}

// Probing are the TLS settings with which a program of the same configuration asks the listener for a sign of life. Whose
// certificate that has does not count: nothing that is secret is sent, and nothing but a sign of life is believed. Nor do files
// that are broken, since the listener may still have what they held. It is nil if clients speak no TLS.
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

// untimely joins what is wrong with the time of certificates that are shown.
func (f Files) untimely(read *contents, now time.Time) error {
	return errors.Join(
		untimely("tls-cert", f.TLSCert, read.own, now),
		untimely("client-cert", f.ClientCert, read.shown, now),
	)
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
