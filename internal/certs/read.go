package certs

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"redlock-proxy/internal/regular"
)

// contents holds the contents of the files at the last read. It never changes.
type contents struct {
	files      Files
	serverCert *tls.Certificate // of the listener
	clientCAs  *x509.CertPool   // sign the clients' certificates; nil: clients need no certificate
	clientCert *tls.Certificate // for connections to servers
	rootCAs    *x509.CertPool   // sign the servers' certificates; nil: only the system's
}

// listenerConfig returns the TLS settings for one client.
func (c *contents) listenerConfig() *tls.Config {
	config := &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{*c.serverCert},
		// If clients could resume sessions, the listener would not check their certificates again.
		SessionTicketsDisabled: true,
		// Small records at the beginning help only browsers.
		DynamicRecordSizingDisabled: true,
	}
	if c.clientCAs != nil {
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, c.clientCAs
	}
	return config
}

// read reads all files.
func (f Files) read() (*contents, error) {
	serverCert, serverErr := readPair("tls-cert", f.TLSCert, "tls-key", f.TLSKey)
	clientCert, clientErr := readPair("client-cert", f.ClientCert, "client-key", f.ClientKey)
	loaded := &contents{files: f, serverCert: serverCert, clientCert: clientCert}
	var clientCAsErr, rootCAsErr error
	if f.TLSClientCA != "" {
		loaded.clientCAs = x509.NewCertPool()
		clientCAsErr = addCAs(loaded.clientCAs, "tls-client-ca", f.TLSClientCA)
	}
	if f.CA != "" {
		if loaded.rootCAs, rootCAsErr = x509.SystemCertPool(); rootCAsErr == nil {
			rootCAsErr = addCAs(loaded.rootCAs, "ca", f.CA)
		}
	}
	if err := errors.Join(serverErr, clientCAsErr, rootCAsErr, clientErr); err != nil {
		return nil, err
	}
	return loaded, nil
}

// readPair reads a certificate with its chain, and its key. Without a path it returns nil.
func readPair(certSetting, certPath, keySetting, keyPath string) (*tls.Certificate, error) {
	if certPath == "" {
		return nil, nil
	}
	certPEM, err := readFile(certSetting, certPath)
	if err == nil {
		_, err = parseAll(certPEM) // an error in the certificates must name certSetting
		err = wrapFileError(certSetting, certPath, err)
	}
	keyPEM, keyErr := readFile(keySetting, keyPath)
	if err := errors.Join(err, keyErr); err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: it does not match %s %s: %w", keySetting, keyPath, certSetting, certPath, err)
	}
	return &pair, nil
}

func addCAs(pool *x509.CertPool, setting, path string) error {
	content, err := readFile(setting, path)
	if err != nil {
		return err
	}
	certificates, err := parseAll(content)
	for _, certificate := range certificates {
		pool.AddCert(certificate)
	}
	return wrapFileError(setting, path, err)
}

var errNoCertificate = errors.New("it contains no PEM certificate")

// parseAll returns all certificates of a file. Unlike CertPool.AppendCertsFromPEM, it returns an
// error for a broken certificate.
func parseAll(content []byte) (certificates []*x509.Certificate, err error) {
	for {
		var block *pem.Block
		block, content = pem.Decode(content)
		switch {
		case block == nil && len(certificates) == 0:
			return nil, errNoCertificate
		case block == nil:
			return certificates, nil
		case block.Type != "CERTIFICATE":
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		certificates = append(certificates, certificate)
	}
}

// maxFileSize limits the size of a file, in bytes. The certificate authorities of a system take a
// quarter of a megabyte.
const maxFileSize = 4 << 20

func readFile(setting, path string) ([]byte, error) {
	content, err := regular.Read(path, maxFileSize)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", setting, err)
	}
	return content, nil
}

// wrapFileError adds the setting and the file to an error.
func wrapFileError(setting, path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %s: %w", setting, path, err)
}
