package conf

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"

	"redlock-proxy/internal/regular"
)

// LogsInToUpstream reports whether the proxy logs in to the upstream: the URL has a user or a
// password.
func (c Config) LogsInToUpstream() bool {
	text := c.Upstream
	if s, named, _ := ReadSentinel(text); named {
		text = s.URLAt("sentinel")
	}
	if s, named, _ := ReadCluster(text); named {
		text = s.URLAt("node")
	}
	u, err := url.Parse(text)
	return err == nil && c.Upstream != "" && u.User != nil
}

// loginProblems returns conflicts between the settings of logins. If the URL of the upstream has a
// login, one of these settings is required, because every client would use that login.
func (c Config) loginProblems() []problem {
	given := c.ClientPasswordFile != ""
	switch {
	case c.ACLFile != "" && given:
		return []problem{{setting: "acl-file", text: "cannot be combined with client-password-file; use either the " +
			"users of the file, or one password for all clients"}}
	case c.ACLFile != "" && c.ShareUpstreamLogin:
		return []problem{{setting: "share-upstream-login", text: "cannot be combined with acl-file: the rights of " +
			"its users say what clients may do at the upstream"}}
	case c.ACLFile != "":
		return nil
	case given && c.ShareUpstreamLogin:
		return []problem{{setting: "share-upstream-login", text: "cannot be combined with client-password-file: " +
			"either clients log in to the proxy, or they do not"}}
	case given && !c.LogsInToUpstream():
		return []problem{{setting: "client-password-file", text: "has no effect: the URL of the upstream has no " +
			"login, so clients log in to the upstream with their own"}}
	case c.LogsInToUpstream() && !given && !c.ShareUpstreamLogin:
		return []problem{{setting: "upstream", text: fmt.Sprintf(
			"%q has a login, which every client of the proxy would use; "+
				"require a login with acl-file or client-password-file, or set share-upstream-login: true, "+
				"or remove the login from the URL, so that clients log in with their own", Redact(c.Upstream))}}
	}
	return nil
}

// ClientPassword reads the password that clients must log in with: the content of the file, without
// the line end. It is empty if the settings name no file.
func (c Config) ClientPassword() (string, error) {
	if c.ClientPasswordFile == "" {
		return "", nil
	}
	content, err := regular.Read(c.ClientPasswordFile, maxFileSize)
	if err != nil {
		return "", fmt.Errorf("client-password-file: %w", err)
	}
	password := bytes.TrimRight(content, "\r\n")
	switch {
	case len(password) == 0:
		err = errors.New("is empty")
	case len(password) > maxPasswordSize:
		err = fmt.Errorf("holds more than %d bytes", maxPasswordSize)
	case bytes.ContainsAny(password, "\r\n"):
		err = errors.New("holds more than one line")
	}
	if err != nil {
		return "", fmt.Errorf("client-password-file: %s %w", c.ClientPasswordFile, err)
	}
	return string(password), nil
}

// maxPasswordSize limits the length of a password, in bytes.
const maxPasswordSize = 512
