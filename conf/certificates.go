package conf

import (
	"fmt"
	"slices"
	"strings"

	"redlock-proxy/internal/certs"
)

// CertificateFiles returns the certificate files that the settings name.
func (c Config) CertificateFiles() certs.Files {
	return certs.Files{
		TLSCert: c.TLSCert, TLSKey: c.TLSKey, TLSClientCA: c.TLSClientCA,
		ClientCert: c.ClientCert, ClientKey: c.ClientKey, CA: c.CA,
	}
}

// certificateProblems returns a problem for each given file that requires a second file which is
// not given. It reads no file.
func (c Config) certificateProblems() []problem {
	var problems []problem
	needs := func(setting, value, requiredSetting, requiredValue string) {
		if value != "" && requiredValue == "" {
			problems = append(problems, problem{setting: setting, text: fmt.Sprintf("%q is given without %s", value, requiredSetting)})
		}
	}
	needs("tls-cert", c.TLSCert, "tls-key", c.TLSKey)
	needs("tls-key", c.TLSKey, "tls-cert", c.TLSCert)
	needs("tls-client-ca", c.TLSClientCA, "tls-cert", c.TLSCert)
	needs("client-cert", c.ClientCert, "client-key", c.ClientKey)
	needs("client-key", c.ClientKey, "client-cert", c.ClientCert)
	return problems
}

// certificateWarnings returns warnings about certificates for servers if no server uses TLS.
func (c Config) certificateWarnings() []string {
	speaksTLS := func(url string) bool {
		scheme, _, _ := strings.Cut(url, "://")
		return slices.Contains([]string{"rediss", "rediss" + sentinelScheme, "rediss" + clusterScheme}, scheme)
	}
	if slices.ContainsFunc(append([]string{c.Upstream}, c.Masters...), speaksTLS) {
		return nil
	}
	var found []string
	for _, setting := range [][2]string{{"ca", c.CA}, {"client-cert", c.ClientCert}} {
		if setting[1] != "" {
			found = append(found,
				fmt.Sprintf("%s: %q has no effect: no server has a rediss:// URL", setting[0], setting[1]))
		}
	}
	return found
}
