package certs

import (
	"crypto/tls"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Files holds the paths of PEM files from the settings of the same names. An empty path means no
// file.
type Files struct {
	// TLSCert and TLSKey are for the listener; TLSClientCA has the certificate authorities that
	// sign the clients' certificates.
	TLSCert, TLSKey, TLSClientCA string
	// ClientCert and ClientKey are for connections to servers; CA has certificate authorities to
	// trust in addition to the system's.
	ClientCert, ClientKey, CA string
}

// Certificates holds the contents of the files. It is safe for concurrent use.
type Certificates struct{ current atomic.Pointer[contents] }

// Load reads the files. An error names the setting and the file.
func Load(files Files) (*Certificates, error) {
	loaded, err := files.read()
	if err != nil {
		return nil, err
	}
	c := &Certificates{}
	c.current.Store(loaded)
	return c, nil
}

// Prepare reads files, which may differ from the current ones, and returns a function that puts
// their contents into use. renewedSettings lists the settings whose certificates then change. The
// error names each setting whose file is missing or broken. If all files are readable, the error
// names each new certificate that has expired or is not valid yet.
func (c *Certificates) Prepare(files Files, now time.Time) (activate func(), renewedSettings []string, err error) {
	loaded, err := files.read()
	if err != nil {
		return nil, nil, err
	}
	current := c.current.Load()
	err = errors.Join(
		checkValidity("tls-cert", files.TLSCert, changedCertificate(loaded.serverCert, current.serverCert), now),
		checkValidity("client-cert", files.ClientCert, changedCertificate(loaded.clientCert, current.clientCert), now),
	)
	if err != nil {
		return nil, nil, err
	}
	return func() { c.current.Store(loaded) }, loaded.changedSettings(current), nil
}

// changedSettings returns the settings whose certificates differ from the previous contents.
func (c *contents) changedSettings(previous *contents) (settings []string) {
	isSame := func(now, previous *tls.Certificate) bool {
		return (now == nil) == (previous == nil) && changedCertificate(now, previous) == nil
	}
	for _, setting := range []struct {
		name string
		same bool
	}{
		{"tls-cert", isSame(c.serverCert, previous.serverCert)},
		{"tls-client-ca", c.clientCAs.Equal(previous.clientCAs)},
		{"client-cert", isSame(c.clientCert, previous.clientCert)},
		{"ca", c.rootCAs.Equal(previous.rootCAs)},
	} {
		if !setting.same {
			settings = append(settings, setting.name)
		}
	}
	return settings
}

// changedCertificate returns the current certificate, or nil if it equals the previous certificate.
func changedCertificate(current, previous *tls.Certificate) *tls.Certificate {
	if current != nil && previous != nil && current.Leaf.Equal(previous.Leaf) {
		return nil
	}
	return current
}

// ValidityError returns an error that names each certificate that has expired or is not valid yet.
// It returns nil if all certificates are valid.
func (c *Certificates) ValidityError(now time.Time) error {
	current := c.current.Load()
	return errors.Join(
		checkValidity("tls-cert", current.files.TLSCert, current.serverCert, now),
		checkValidity("client-cert", current.files.ClientCert, current.clientCert, now),
	)
}

// NotAfter returns the time at which the listener's certificate expires, or the zero time without a
// certificate.
func (c *Certificates) NotAfter() time.Time {
	if cert := c.current.Load().serverCert; cert != nil {
		return cert.Leaf.NotAfter
	}
	return time.Time{}
}

// ListenerConfig returns the TLS settings for clients, from the current files, or nil if the
// listener has no certificate.
func (c *Certificates) ListenerConfig() *tls.Config {
	current := c.current.Load()
	if current.serverCert == nil {
		return nil
	}
	return current.listenerConfig()
}

// ConfigureDial sets the certificate authorities to trust and the certificate to present in the TLS
// settings of a new connection to a server. It leaves a field unchanged if Files names no file for
// it.
func (c *Certificates) ConfigureDial(config *tls.Config) {
	current := c.current.Load()
	if current.rootCAs != nil {
		config.RootCAs = current.rootCAs
	}
	if current.clientCert != nil {
		config.Certificates = []tls.Certificate{*current.clientCert}
	}
}

// ProbeConfig returns the TLS settings for a health check of the listener by a program with the
// same configuration. It returns nil if the listener has no certificate. The settings accept any
// certificate, since the check sends no secret. ProbeConfig ignores broken files, since the
// listener may still use their earlier contents.
func ProbeConfig(files Files) *tls.Config {
	if files.TLSCert == "" {
		return nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}
	loaded, err := files.read()
	switch {
	case err != nil:
	case loaded.clientCert != nil:
		config.Certificates = []tls.Certificate{*loaded.clientCert}
	default:
		// The listener's certificate is usually also valid as a client certificate.
		config.Certificates = []tls.Certificate{*loaded.serverCert}
	}
	return config
}

// checkValidity returns an error if a certificate has expired or is not valid yet.
func checkValidity(setting, path string, pair *tls.Certificate, now time.Time) error {
	switch {
	case pair == nil:
		return nil
	case now.After(pair.Leaf.NotAfter):
		return fmt.Errorf("%s: %s: the certificate expired at %s",
			setting, path, pair.Leaf.NotAfter.Format(time.RFC3339))
	case now.Before(pair.Leaf.NotBefore):
		return fmt.Errorf("%s: %s: the certificate is not valid before %s",
			setting, path, pair.Leaf.NotBefore.Format(time.RFC3339))
	}
	return nil
}
