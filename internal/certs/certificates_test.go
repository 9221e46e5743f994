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

func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.pem")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestLoadErrors: an error names the setting and the file.
func TestLoadErrors(t *testing.T) {
	ca := certtest.NewAuthority(t)
	one, two := ca.Issue(t), ca.Issue(t)
	broken := file(t, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
	empty := file(t, "")
	tests := []struct {
		name  string
		files Files
		want  string
	}{
		{"nothing", Files{}, ""},
		{"all", Files{TLSCert: one.Cert, TLSKey: one.Key, TLSClientCA: ca.File, ClientCert: two.Cert,
			ClientKey: two.Key, CA: ca.File}, ""},
		{"no certificate", Files{TLSCert: "/none", TLSKey: one.Key}, "tls-cert: open /none: no such file or directory"},
		{"no key", Files{TLSCert: one.Cert, TLSKey: "/none"}, "tls-key: open /none: no such file or directory"},
		{"a folder", Files{TLSCert: one.Cert, TLSKey: "/tmp"}, "tls-key: read /tmp: is a directory"},
		{"without an end", Files{TLSCert: one.Cert, TLSKey: "/dev/zero"},
			"tls-key: /dev/zero: it is larger than 4194304 bytes"},
		{"another's key", Files{TLSCert: one.Cert, TLSKey: two.Key}, "tls-key: " +
			two.Key + ": it does not match tls-cert " + one.Cert + ": "},
		{"a certificate for a key", Files{ClientCert: one.Cert, ClientKey: one.Cert}, "client-key: " +
			one.Cert + ": it does not match client-cert " + one.Cert + ": "},
		{"a key for a certificate", Files{ClientCert: one.Key, ClientKey: one.Key}, "client-cert: " +
			one.Key + ": it contains no PEM certificate"},
		{"an empty authority", Files{TLSCert: one.Cert, TLSKey: one.Key, TLSClientCA: empty}, "tls-client-ca: " +
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

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// handshake connects a client with these settings to a listener with these certificates, and
// returns the serial number of the certificate that the client gets.
func handshake(t *testing.T, c *Certificates, client *tls.Config) (shown string, err error) {
	t.Helper()
	here, there := net.Pipe()
	defer here.Close()
	served := make(chan error, 1)
	go func() {
		conn := tls.Server(there, c.Listener())
		err := conn.Handshake()
		there.Close() // without TLS' closing message: the client does not read it
		served <- err
	}()
	conn := tls.Client(here, client)
	err = conn.Handshake()
	if err == nil {
		shown = conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	here.Close()
	if serverErr := <-served; err == nil {
		err = serverErr
	}
	return shown, err
}

// reload reads the files again, and uses them if there is no error.
func reload(c *Certificates, files Files) error {
	use, _, err := c.Prepare(files, time.Now())
	if err == nil {
		use()
	}
	return err
}

// TestReload: a reload applies to the next connection; a failed reload changes nothing.
func TestReload(t *testing.T) {
	ca := certtest.NewAuthority(t)
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
	early := ca.IssueUntil(t, time.Now().Add(100*time.Hour))
	for name, bad := range map[string]struct {
		with certtest.Pair
		want string
	}{
		"expired": {expired, "tls-cert: " + pair.Cert + ": the certificate expired at "},
		"early":   {early, "tls-cert: " + pair.Cert + ": the certificate is not valid before "},
		"halves":  {certtest.Pair{Cert: ca.Issue(t).Cert, Key: pair.Key}, "tls-key: " + pair.Key + ": it does not match"},
	} {
		was := certtest.Pair{Cert: file(t, read(t, pair.Cert)), Key: file(t, read(t, pair.Key))}
		pair.Become(t, bad.with)
		if err := reload(c, files); err == nil || !strings.HasPrefix(err.Error(), bad.want) {
			t.Errorf("%s: got %v, want %q", name, err, bad.want)
		}
		if shown, err := handshake(t, c, client); shown != first || err != nil {
			t.Errorf("%s: shown is %s, %v, want %s", name, shown, err, first)
		}
		pair.Become(t, was)
	}
	if _, renewed, _ := c.Prepare(files, time.Now()); len(renewed) > 0 {
		t.Errorf("nothing is renewed, and it says %v", renewed)
	}
	pair.Become(t, ca.Issue(t))
	if _, renewed, _ := c.Prepare(files, time.Now()); fmt.Sprint(renewed) != "[tls-cert]" {
		t.Errorf("tls-cert is renewed, and it says %v", renewed)
	}
	if err := reload(c, files); err != nil {
		t.Fatal(err)
	}
	if shown, err := handshake(t, c, client); shown == first || err != nil {
		t.Errorf("shown is %s, %v, want another than %s", shown, err, first)
	}
	if c.Until().Before(time.Now()) || c.ValidityError(time.Now()) != nil ||
		c.ValidityError(time.Now().Add(1000*time.Hour)) == nil {
		t.Error("it does not know its time")
	}
}

// TestOtherFiles: a reload can name different files, and can switch TLS off and on. A certificate
// that expired while in use does not fail a reload.
func TestOtherFiles(t *testing.T) {
	ca := certtest.NewAuthority(t)
	one, two, old := ca.Issue(t), ca.Issue(t), ca.IssueUntil(t, time.Now().Add(-time.Minute))
	c, err := Load(Files{TLSCert: old.Cert, TLSKey: old.Key})
	if err != nil {
		t.Fatal(err)
	}
	client := &tls.Config{RootCAs: ca.Pool(), ServerName: "localhost"}
	var shown []string
	for _, files := range []Files{{TLSCert: old.Cert, TLSKey: old.Key}, {TLSCert: one.Cert, TLSKey: one.Key}, {},
		{TLSCert: two.Cert, TLSKey: two.Key}} {
		if err := reload(c, files); err != nil {
			t.Fatal(err)
		}
		if on := c.Listener() != nil; on != (files.TLSCert != "") {
			t.Errorf("%+v: clients speak TLS: %v", files, on)
		} else if on && files.TLSCert != old.Cert {
			serial, err := handshake(t, c, client)
			if err != nil {
				t.Fatal(err)
			}
			shown = append(shown, serial)
		}
	}
	if len(shown) != 2 || shown[0] == shown[1] {
		t.Errorf("shown are %v", shown)
	}
	if err := reload(c, Files{TLSCert: old.Cert, TLSKey: old.Key}); err == nil {
		t.Error("an expired certificate is taken that was not in use")
	}
}

// TestListener: clients without the required certificate or with an old TLS version are refused.
func TestListener(t *testing.T) {
	ca, other := certtest.NewAuthority(t), certtest.NewAuthority(t)
	pair, known, stranger := ca.Issue(t), ca.Issue(t), other.Issue(t)
	expired := ca.IssueUntil(t, time.Now().Add(-time.Minute))
	c, err := Load(Files{TLSCert: pair.Cert, TLSKey: pair.Key, TLSClientCA: ca.File})
	if err != nil {
		t.Fatal(err)
	}
	with := func(shown ...certtest.Pair) *tls.Config {
		config := &tls.Config{RootCAs: ca.Pool(), ServerName: "localhost"}
		for i := range shown {
			config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate,
				error) {
				return &shown[i].TLS, nil
			}
		}
		return config
	}
	old, foreign := with(known), with(known)
	old.MaxVersion = tls.VersionTLS11
	foreign.RootCAs = other.Pool()
	for name, test := range map[string]struct {
		client *tls.Config
		want   string
	}{
		"known":       {with(known), ""},
		"none":        {with(), "tls: client didn't provide a certificate"},
		"a stranger":  {with(stranger), "tls: failed to verify certificate: x509: "},
		"expired":     {with(expired), "tls: failed to verify certificate: x509: certificate has expired"},
		"an old TLS":  {old, ""},
		"not trusted": {foreign, "tls: failed to verify certificate: x509: "},
	} {
		_, err := handshake(t, c, test.client)
		if ok := name == "known"; ok != (err == nil) || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}

// TestDialing: a connection to a server trusts the certificate authorities of the file in addition
// to the system's, and presents the certificate of the file.
func TestDialing(t *testing.T) {
	ca := certtest.NewAuthority(t)
	pair := ca.Issue(t)
	server, err := Load(Files{TLSCert: pair.Cert, TLSKey: pair.Key, TLSClientCA: ca.File})
	if err != nil {
		t.Fatal(err)
	}
	client, err := Load(Files{CA: ca.File, ClientCert: pair.Cert, ClientKey: pair.Key})
	if err != nil {
		t.Fatal(err)
	}
	if client.Listener() != nil || Probing(Files{}) != nil {
		t.Error("there is a listener without a certificate")
	}
	config := &tls.Config{ServerName: "localhost"}
	client.Dialing(config)
	if _, err := handshake(t, server, config); err != nil {
		t.Error(err)
	}
	if _, err := handshake(t, server, Probing(server.current.Load().files)); err != nil {
		t.Errorf("a health check of the same settings: %v", err)
	}
	config = &tls.Config{ServerName: "localhost"}
	none, _ := Load(Files{})
	if none.Dialing(config); config.RootCAs != nil || config.Certificates != nil {
		t.Error("something is added where there is nothing")
	}
}
