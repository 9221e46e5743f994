package certs

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
)

// contents are what the files held when they were read. They are not changed.
type contents struct {
	files   Files
	own     *tls.Certificate // what clients are shown
	clients *x509.CertPool   // the authorities of what they show; nil: they need show nothing
	shown   *tls.Certificate // what servers are shown
	roots   *x509.CertPool   // the authorities of what they show; nil: the system's
}

// listener are the TLS settings for one client.
func (c *contents) listener() *tls.Config {
	config := &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{*c.own},
		// Nobody comes back by what an authority said that is not believed any more.
		SessionTicketsDisabled: true,
		// Small records at the beginning are for browsers.
		DynamicRecordSizingDisabled: true,
	}
	if c.clients != nil {
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, c.clients
	}
	return config
}

// read reads all files.
func (f Files) read() (*contents, error) {
	own, ownErr := readPair("tls-cert", f.TLSCert, "tls-key", f.TLSKey)
	shown, shownErr := readPair("client-cert", f.ClientCert, "client-key", f.ClientKey)
	read := &contents{files: f, own: own, shown: shown}
	var clientsErr, rootsErr error
	if f.TLSClientCA != "" {
		read.clients = x509.NewCertPool()
		clientsErr = addAuthorities(read.clients, "tls-client-ca", f.TLSClientCA)
	}
	if f.CA != "" {
		if read.roots, rootsErr = x509.SystemCertPool(); rootsErr == nil {
			rootsErr = addAuthorities(read.roots, "ca", f.CA)
		}
	}
	if err := errors.Join(ownErr, clientsErr, rootsErr, shownErr); err != nil {
		return nil, err
	}
	return read, nil
}

// readPair reads a certificate, and those after it that lead to its authority, and its key. Without
// a path it is nil.
func readPair(certSetting, certPath, keySetting, keyPath string) (*tls.Certificate, error) {
	if certPath == "" {
		return nil, nil
	}
	certPEM, err := readFile(certSetting, certPath)
	if err == nil {
		_, err = parseAll(certPEM) // tells what is wrong with the certificates alone
		err = wrong(certSetting, certPath, err)
	}
	keyPEM, keyErr := readFile(keySetting, keyPath)
	if err := errors.Join(err, keyErr); err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: it does not go with %s %s: %w", keySetting, keyPath, certSetting, certPath, err)
	}
	return &pair, nil
}

func addAuthorities(pool *x509.CertPool, setting, path string) error {
	content, err := readFile(setting, path)
	if err != nil {
		return err
	}
	all, err := parseAll(content)
	for _, certificate := range all {
		pool.AddCert(certificate)
	}
	return wrong(setting, path, err)
}

var errNoCertificate = errors.New("it holds no certificate in PEM")

// parseAll gives all certificates of a file. Unlike x509's own, it does not pass over a broken one.
func parseAll(content []byte) (all []*x509.Certificate, err error) {
	for {
		var block *pem.Block
		block, content = pem.Decode(content)
		switch {
		case block == nil && len(all) == 0:
			return nil, errNoCertificate
		case block == nil:
			return all, nil
		case block.Type != "CERTIFICATE":
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		all = append(all, certificate)
	}
}

// maxFile bounds a file, in bytes: the authorities of a system take a quarter of a megabyte.
const maxFile = 4 << 20

func readFile(setting, path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", setting, err)
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", setting, err)
	case len(content) > maxFile:
		return nil, fmt.Errorf("%s: %s: it is larger than %d bytes", setting, path, maxFile)
	}
	return content, nil
}

// wrong is an error with the setting and the file that it comes from.
func wrong(setting, path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %s: %w", setting, path, err)
}
