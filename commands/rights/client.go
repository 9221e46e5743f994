package rights

import (
	"context"
	"fmt"
	"slices"

	"redlock-proxy/commands/catalog/syntax"
)

// Client checks the permissions of a client.
type Client struct {
	// Upstream is the client's own connection to the upstream. It is nil without an upstream. Then
	// every client has all permissions, unless there is a Checker.
	Upstream Upstream
	// Checker decides about permissions if the users are the proxy's own; otherwise it is nil.
	Checker Checker
	// Unrestricted is set if the client has all permissions at the upstream. Then the proxy asks
	// nothing.
	Unrestricted bool
}

// HasAllPermissions reports whether the client has all permissions.
func (c *Client) HasAllPermissions() bool {
	return c.Unrestricted || c.Upstream == nil && c.Checker == nil
}

// NewPermissions returns an empty record of the client's permissions.
func (c *Client) NewPermissions() *Permissions {
	return &Permissions{upstream: c.Upstream, checker: c.Checker, hasAll: c.HasAllPermissions(), refusals: map[string]string{}}
}

// Refusal returns the error for a command that the client may not run, or whose permission cannot
// be checked. It is empty if the client may run the command.
func (c *Client) Refusal(ctx context.Context, words [][]byte) string {
	return c.refusal(ctx, words, func() [][]string { return PermissionChecks(syntax.Strings(words)) })
}

// RefusalOf does the same as Refusal, but the words themselves are the only permission check.
func (c *Client) RefusalOf(ctx context.Context, words ...string) string {
	return c.refusal(ctx, syntax.Bytes(words), func() [][]string { return [][]string{words} })
}

func (c *Client) refusal(ctx context.Context, words [][]byte, checks func() [][]string) string {
	switch {
	case c.HasAllPermissions():
		return ""
	case c.Checker != nil:
		return c.Checker.Refusal(words)
	}
	list := checks()
	if len(list) == 0 {
		return ""
	}
	if len(list) > maxChecks {
		return fmt.Sprintf("ERR too many permissions to check: the limit is %d; use fewer keys", maxChecks)
	}
	refusals, err := c.Upstream.Refusals(ctx, list)
	if err != nil {
		return "ERR " + err.Error()
	}
	if i := slices.IndexFunc(refusals, func(text string) bool { return text != "" }); i >= 0 {
		return refusals[i]
	}
	return ""
}

// FilterReadable returns the keys whose values the client may read.
func (c *Client) FilterReadable(ctx context.Context, keys []string) (readableKeys []string, err error) {
	switch {
	case c.HasAllPermissions():
		return keys, nil
	case c.Checker != nil:
		return slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return !c.Checker.MayRead(key) }), nil
	}
	checks := make([][]string, len(keys))
	for i, key := range keys {
		checks[i] = oneKeyCheck("get", key)
	}
	refusals, err := c.Upstream.Refusals(ctx, checks)
	if err != nil {
		return nil, err
	}
	for i, text := range refusals {
		if text == "" {
			readableKeys = append(readableKeys, keys[i])
		}
	}
	return readableKeys, nil
}
