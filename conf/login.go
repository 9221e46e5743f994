package conf

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"os"
)

// LogsIn reports whether the upstream's URL names a user or a password, with which the proxy logs
// in there.
func (c Config) LogsIn() bool {
	text := c.Upstream
	if s, named, _ := ReadSentinel(text); named {
		text = s.At("sentinel")
	}
	u, err := url.Parse(text)
	return err == nil && c.Upstream != "" && u.User != nil
}

// loginProblems are those of an upstream whose URL has a login: it would be that of everybody who
// reaches the proxy.
func (c Config) loginProblems() []problem {
	given := c.ClientPasswordFile != ""
	switch {
	case c.ACLFile != "" && given:
		return []problem{{setting: "acl-file", text: "cannot be given beside client-password-file: clients log in at the proxy as one of its users, or with the one password"}}
	case c.ACLFile != "" && c.ShareUpstreamLogin:
		return []problem{{setting: "share-upstream-login", text: "cannot be true beside acl-file: the users say who may do what at the upstream"}}
	case c.ACLFile != "":
		return nil
	case given && c.ShareUpstreamLogin:
		return []problem{{setting: "share-upstream-login", text: "cannot be true beside client-password-file: either clients log in at the proxy, or they do not"}}
	case given && !c.LogsIn():
		return []problem{{setting: "client-password-file", text: "has no use: the URL of the upstream has no login, so clients log in there with their own"}}
	case c.LogsIn() && !given && !c.ShareUpstreamLogin:
		return []problem{{setting: "upstream", text: fmt.Sprintf("%q has a login, with which everybody who reaches the proxy would use that Redis: "+
			"have them log in as users of the proxy (acl-file), or demand a password of them with client-password-file, or say share-upstream-login: true; or take the login out, and clients log in with their own", Redact(c.Upstream))}}
	}
	return nil
}

// ClientPassword reads the password that clients must give: what stands in the file, without the
// line end behind it. It is empty where no file is named.
func (c Config) ClientPassword() (string, error) {
	if c.ClientPasswordFile == "" {
		return "", nil
	}
	content, err := os.ReadFile(c.ClientPasswordFile)
	if err != nil {
		return "", fmt.Errorf("client-password-file: %w", err)
	}
	password := bytes.TrimRight(content, "\r\n")
	switch {
	case len(password) == 0:
		err = errors.New("is empty")
	case len(password) > maxPassword:
		err = fmt.Errorf("holds more than %d bytes", maxPassword)
	case bytes.ContainsAny(password, "\r\n"):
		err = errors.New("holds more than one line")
	}
	if err != nil {
		return "", fmt.Errorf("client-password-file: %s %w", c.ClientPasswordFile, err)
	}
	return string(password), nil
}

// maxPassword bounds a password, in bytes.
const maxPassword = 512
