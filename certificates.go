package main

import (
	"log/slog"
	"time"

	"redlock-proxy/certs"
	"redlock-proxy/conf"
)

// certificateFiles are those that settings name.
func certificateFiles(cfg conf.Config) certs.Files {
	return certs.Files{
		TLSCert: cfg.TLSCert, TLSKey: cfg.TLSKey, TLSClientCA: cfg.TLSClientCA,
		ClientCert: cfg.ClientCert, ClientKey: cfg.ClientKey, CA: cfg.CA,
	}
}

// reloadCertificates reads them again. What is wrong with them leaves all as it was.
func reloadCertificates(c *certs.Certificates, log *slog.Logger) {
	if err := c.Reload(time.Now()); err != nil {
		log.Error("SIGHUP: the certificates stay as they were", "cause", err)
		return
	}
	var about []any
	if until := c.Until(); !until.IsZero() {
		about = append(about, "tls_cert_until", until.Format(time.RFC3339))
	}
	log.Info("SIGHUP: certificates are read again, for new connections; other settings need a restart", about...)
}
