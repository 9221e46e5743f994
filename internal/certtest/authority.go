// Package certtest makes certificate authorities and certificates for tests. Their files are
// removed when the test ends.
package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// CA issues certificates for tests.
type CA struct {
	// File is the path of a PEM file with the certificate of the authority.
	File string

	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// Pair holds a certificate with its private key, and the paths of their PEM files.
type Pair struct {
	Cert, Key string
	TLS       tls.Certificate
}

// NewCA returns a new certificate authority.
func NewCA(t testing.TB) *CA {
	t.Helper()
	a := &CA{File: filepath.Join(t.TempDir(), "ca.crt"), key: newKey(t)}
	template := &x509.Certificate{
		SerialNumber: newSerial(t), Subject: pkix.Name{CommonName: "test authority"},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	must(t, err)
	a.certificate, err = x509.ParseCertificate(raw)
	must(t, err)
	write(t, a.File, "CERTIFICATE", raw)
	return a
}

// Pool returns a pool with this certificate authority only.
func (a *CA) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// Issue returns a certificate for both sides of a connection on this machine, valid for a day.
func (a *CA) Issue(t testing.TB) Pair {
	t.Helper()
	return a.IssueUntil(t, time.Now().Add(24*time.Hour))
}

// IssueUntil returns a certificate like Issue. It is valid for the 48 hours before until, which may
// be in the past.
func (a *CA) IssueUntil(t testing.TB, until time.Time) Pair {
	t.Helper()
	return a.issue(t, until, net.IPv4(127, 0, 0, 1), net.IPv6loopback)
}

// IssueByName returns a certificate like Issue, which is valid for the name localhost, and for no
// IP address.
func (a *CA) IssueByName(t testing.TB) Pair {
	t.Helper()
	return a.issue(t, time.Now().Add(24*time.Hour))
}

func (a *CA) issue(t testing.TB, until time.Time, ips ...net.IP) Pair {
	t.Helper()
	folder, key := t.TempDir(), newKey(t)
	template := &x509.Certificate{
		SerialNumber: newSerial(t), Subject: pkix.Name{CommonName: "localhost"},
		NotBefore: until.Add(-48 * time.Hour), NotAfter: until,
		DNSNames:    []string{"localhost"},
		IPAddresses: ips,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	must(t, err)
	keyBytes, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	p := Pair{Cert: filepath.Join(folder, "tls.crt"), Key: filepath.Join(folder, "tls.key")}
	write(t, p.Cert, "CERTIFICATE", raw)
	write(t, p.Key, "PRIVATE KEY", keyBytes)
	p.TLS, err = tls.LoadX509KeyPair(p.Cert, p.Key)
	must(t, err)
	return p
}

// CopyFrom overwrites the files of this pair with the certificate and key of another pair.
func (p Pair) CopyFrom(t testing.TB, other Pair) {
	t.Helper()
	for to, from := range map[string]string{p.Cert: other.Cert, p.Key: other.Key} {
		content, err := os.ReadFile(from)
		must(t, err)
		must(t, os.WriteFile(to, content, 0o600))
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	return key
}

func newSerial(t testing.TB) *big.Int {
	t.Helper()
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	must(t, err)
	return serial
}

func write(t testing.TB, path, kind string, raw []byte) {
	t.Helper()
	must(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}), 0o600))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
