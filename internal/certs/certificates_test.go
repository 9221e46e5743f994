package certs

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"redlock-proxy/internal/certtest"
)

func writeFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.pem")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestLoadErrors checks that an error names the setting and the file.
func TestLoadErrors(t *testing.T) {
	ca := certtest.NewCA(t)
	first, second := ca.Issue(t), ca.Issue(t)
	broken := writeFile(t, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
	empty := writeFile(t, "")
	tests := []struct {
		name  string
		files Files
		want  string
	}{
		{"nothing", Files{}, ""},
		{"all", Files{TLSCert: first.Cert, TLSKey: first.Key, TLSClientCA: ca.File, ClientCert: second.Cert,
			ClientKey: second.Key, CA: ca.File}, ""},
		{"no certificate", Files{TLSCert: "/none", TLSKey: first.Key}, "tls-cert: open /none: no such file or directory"},
		{"no key", Files{TLSCert: first.Cert, TLSKey: "/none"}, "tls-key: open /none: no such file or directory"},
		{"a folder", Files{TLSCert: first.Cert, TLSKey: "/tmp"}, "tls-key: read /tmp: not a regular file; name a file, or a link to one"},
		{"an endless file", Files{TLSCert: first.Cert, TLSKey: "/dev/zero"},
			"tls-key: read /dev/zero: not a regular file; name a file, or a link to one"},
		{"another's key", Files{TLSCert: first.Cert, TLSKey: second.Key}, "tls-key: " +
			second.Key + ": it does not match tls-cert " + first.Cert + ": "},
		{"a certificate for a key", Files{ClientCert: first.Cert, ClientKey: first.Cert}, "client-key: " +
			first.Cert + ": it does not match client-cert " + first.Cert + ": "},
		{"a key for a certificate", Files{ClientCert: first.Key, ClientKey: first.Key}, "client-cert: " +
			first.Key + ": it contains no PEM certificate"},
		{"an empty authority", Files{TLSCert: first.Cert, TLSKey: first.Key, TLSClientCA: empty}, "tls-client-ca: " +
			empty + ": it contains no PEM certificate"},
		{"a broken authority", Files{CA: broken}, "ca: " + broken + ": x509: "},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Load(test.files)
			if test.want == "" && err != nil || test.want != "" && (err == nil ||
				!strings.HasPrefix(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func mustRead(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// handshake connects a client with these settings to a listener with these certificates, and
// returns the serial number of the certificate that the client gets.
func handshake(t *testing.T, c *Certificates, client *tls.Config) (serial string, err error) {
	t.Helper()
	clientConn, serverConn := net.Pipe()
	defer clientConn.Close()
	serverDone := make(chan error, 1)
	go func() {
		conn := tls.Server(serverConn, c.ListenerConfig())
		err := conn.Handshake()
		// A close_notify alert would block, because the client does not read it.
		serverConn.Close()
		serverDone <- err
	}()
	conn := tls.Client(clientConn, client)
	err = conn.Handshake()
	if err == nil {
		serial = conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	clientConn.Close()
	if serverErr := <-serverDone; err == nil {
		err = serverErr
	}
	return serial, err
}

// reload reads the files again, and uses them if there is no error.
func reload(c *Certificates, files Files) error {
	use, _, err := c.Prepare(files, time.Now())
	if err == nil {
		use()
	}
	return err
}

// TestReload checks that a reload applies to the next connection, and that a failed reload changes
// nothing.
func TestReload(t *testing.T) {
	ca := certtest.NewCA(t)
	pair := ca.Issue(t)
	files := Files{TLSCert: pair.Cert, TLSKey: pair.Key}
	c, err := Load(files)
	if err != nil {
		t.Fatal(err)
	}
	client := &tls.Config{RootCAs: ca.Pool(), ServerName: "localhost"}
	first, err := handshake(t, c, client)
	if err != nil {
		t.Fatal(err)
	}
	expired := ca.IssueUntil(t, time.Now().Add(-time.Minute))
	notYetValid := ca.IssueUntil(t, time.Now().Add(100*time.Hour))
	for name, test := range map[string]struct {
		newPair certtest.Pair
		want    string
	}{
		"expired": {expired, "tls-cert: " + pair.Cert + ": the certificate expired at "},
		"early":   {notYetValid, "tls-cert: " + pair.Cert + ": the certificate is not valid before "},
		"halves":  {certtest.Pair{Cert: ca.Issue(t).Cert, Key: pair.Key}, "tls-key: " + pair.Key + ": it does not match"},
	} {
		saved := certtest.Pair{Cert: writeFile(t, mustRead(t, pair.Cert)), Key: writeFile(t, mustRead(t, pair.Key))}
		pair.CopyFrom(t, test.newPair)
		if err := reload(c, files); err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
		if serial, err := handshake(t, c, client); serial != first || err != nil {
			t.Errorf("%s: the serial is %s, %v, want %s", name, serial, err, first)
		}
		pair.CopyFrom(t, saved)
	}
	if _, renewed, _ := c.Prepare(files, time.Now()); len(renewed) > 0 {
		t.Errorf("no certificate is renewed, got %v", renewed)
	}
	pair.CopyFrom(t, ca.Issue(t))
	if _, renewed, _ := c.Prepare(files, time.Now()); fmt.Sprint(renewed) != "[tls-cert]" {
		t.Errorf("tls-cert is renewed, got %v", renewed)
	}
	if err := reload(c, files); err != nil {
		t.Fatal(err)
	}
	if serial, err := handshake(t, c, client); serial == first || err != nil {
		t.Errorf("the serial is %s, %v, want another than %s", serial, err, first)
	}
	if c.NotAfter().Before(time.Now()) || c.ValidityError(time.Now()) != nil ||
		c.ValidityError(time.Now().Add(1000*time.Hour)) == nil {
		t.Error("the validity is wrong")
	}
}

// TestDifferentFiles checks that a reload can name different files, and can switch TLS off and on.
// A certificate that expired while in use does not fail a reload.
func TestDifferentFiles(t *testing.T) {
	ca := certtest.NewCA(t)
	first, second, expired := ca.Issue(t), ca.Issue(t), ca.IssueUntil(t, time.Now().Add(-time.Minute))
	c, err := Load(Files{TLSCert: expired.Cert, TLSKey: expired.Key})
	if err != nil {
		t.Fatal(err)
	}
	client := &tls.Config{RootCAs: ca.Pool(), ServerName: "localhost"}
	var serials []string
	for _, files := range []Files{{TLSCert: expired.Cert, TLSKey: expired.Key}, {TLSCert: first.Cert, TLSKey: first.Key}, {},
		{TLSCert: second.Cert, TLSKey: second.Key}} {
		if err := reload(c, files); err != nil {
			t.Fatal(err)
		}
		if hasTLS := c.ListenerConfig() != nil; hasTLS != (files.TLSCert != "") {
			t.Errorf("%+v: clients speak TLS: %v", files, hasTLS)
		} else if hasTLS && files.TLSCert != expired.Cert {
			serial, err := handshake(t, c, client)
			if err != nil {
				t.Fatal(err)
			}
			serials = append(serials, serial)
		}
	}
	if len(serials) != 2 || serials[0] == serials[1] {
		t.Errorf("the serials are %v", serials)
	}
	if err := reload(c, Files{TLSCert: expired.Cert, TLSKey: expired.Key}); err == nil {
		t.Error("an expired certificate was loaded that was not in use")
	}
}

// TestListener checks that clients without the required certificate or with an old TLS version are
// refused.
func TestListener(t *testing.T) {
	ca, otherCA := certtest.NewCA(t), certtest.NewCA(t)
	pair, trusted, untrusted := ca.Issue(t), ca.Issue(t), otherCA.Issue(t)
	expired := ca.IssueUntil(t, time.Now().Add(-time.Minute))
	c, err := Load(Files{TLSCert: pair.Cert, TLSKey: pair.Key, TLSClientCA: ca.File})
	if err != nil {
		t.Fatal(err)
	}
	configWith := func(pairs ...certtest.Pair) *tls.Config {
		config := &tls.Config{RootCAs: ca.Pool(), ServerName: "localhost"}
		for i := range pairs {
			config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate,
				error) {
				return &pairs[i].TLS, nil
			}
		}
		return config
	}
	oldTLS, foreign := configWith(trusted), configWith(trusted)
	oldTLS.MaxVersion = tls.VersionTLS11
	foreign.RootCAs = otherCA.Pool()
	for name, test := range map[string]struct {
		client *tls.Config
		want   string
	}{
		"known":       {configWith(trusted), ""},
		"none":        {configWith(), "tls: client didn't provide a certificate"},
		"a stranger":  {configWith(untrusted), "tls: failed to verify certificate: x509: "},
		"expired":     {configWith(expired), "tls: failed to verify certificate: x509: certificate has expired"},
		"an old TLS":  {oldTLS, ""},
		"not trusted": {foreign, "tls: failed to verify certificate: x509: "},
	} {
		_, err := handshake(t, c, test.client)
		if ok := name == "known"; ok != (err == nil) || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}

// TestDialing checks that a connection to a server trusts the certificate authorities of the file
// in addition to the system's. The connection presents the certificate of the file.
func TestDialing(t *testing.T) {
	ca := certtest.NewCA(t)
	pair := ca.Issue(t)
	server, err := Load(Files{TLSCert: pair.Cert, TLSKey: pair.Key, TLSClientCA: ca.File})
	if err != nil {
		t.Fatal(err)
	}
	client, err := Load(Files{CA: ca.File, ClientCert: pair.Cert, ClientKey: pair.Key})
	if err != nil {
		t.Fatal(err)
	}
	if client.ListenerConfig() != nil || ProbeConfig(Files{}) != nil {
		t.Error("TLS settings exist without a certificate")
	}
	config := &tls.Config{ServerName: "localhost"}
	client.ConfigureDial(config)
	if _, err := handshake(t, server, config); err != nil {
		t.Error(err)
	}
	if _, err := handshake(t, server, ProbeConfig(server.current.Load().files)); err != nil {
		t.Errorf("a health check of the same settings: %v", err)
	}
	config = &tls.Config{ServerName: "localhost"}
	empty, _ := Load(Files{})
	if empty.ConfigureDial(config); config.RootCAs != nil || config.Certificates != nil {
		t.Error("empty settings changed the configuration")
	}
}
