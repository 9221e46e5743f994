package rights

import (
	"context"
	"fmt"
	"strings"

	"redlock-proxy/commands/catalog/syntax"
)

// Upstream checks a client's permissions, as its user, on its own connection to the upstream.
type Upstream interface {
	// Refusals asks whether the client may run each of the commands, without running them. A
	// refusal is the upstream's error text, empty if the client may run the command. The error
	// means that the permissions could not be checked.
	Refusals(ctx context.Context, commands [][]string) ([]string, error)
	// Prepare makes the upstream queue commands in one transaction. The error is a *RefusedError if
	// the upstream refuses a command. After any error, the upstream has nothing queued.
	Prepare(ctx context.Context, commands [][]string) (PreparedCommands, error)
}

// Outlet accepts the side effects of programs if there is no upstream. It accepts only messages.
// Prepare is like that of an Upstream.
type Outlet interface {
	Prepare(ctx context.Context, commands [][]string) (PreparedCommands, error)
}

// Checker checks the permissions of the proxy's own users, which the upstream does not have.
type Checker interface {
	// Refusal returns the error for a command of these words; empty if the client may send it.
	Refusal(words [][]byte) string
	// MayRead reports whether the client may read the value of a key.
	MayRead(key string) bool
}

// PreparedCommands holds commands that the upstream has queued but not run.
type PreparedCommands interface {
	// Do runs the commands, in limited time. After an error, some or all of the commands may not
	// have run.
	Do() error
	// Drop discards the commands.
	Drop()
}

// RefusedError holds the upstream's error for a command that it refused.
type RefusedError struct{ Text string }

// Error implements error. It returns the upstream's text.
func (e *RefusedError) Error() string { return e.Text }

// PermissionCheckError reports that the proxy could not ask the upstream for permissions.
type PermissionCheckError struct{ Cause error }

// Error implements error. It includes the cause.
func (e *PermissionCheckError) Error() string {
	return fmt.Sprintf("cannot check this client's permissions: %v", e.Cause)
}

// Unwrap returns the cause.
func (e *PermissionCheckError) Unwrap() error { return e.Cause }

// maxChecks limits the permission checks of one command, script or transaction.
const maxChecks = 1000

// Permissions records the known permissions of a client while one command, script or transaction
// runs, so that the proxy asks for each permission once. It belongs to one goroutine.
type Permissions struct {
	upstream   Upstream
	outlet     Outlet            // nil if there is an upstream, or messages are not supported
	checker    Checker           // nil if the upstream must be asked
	hasAll     bool              // the client has all permissions
	refusals   map[string]string // by the MapKey of the check; empty if permitted
	openChecks [][]string        // checks of the current run without an answer
}

// HasAll reports whether the client has all permissions.
func (k *Permissions) HasAll() bool { return k.hasAll }

// NeedsCheck reports whether a Checker decides. Then the proxy does not ask the upstream.
func (k *Permissions) NeedsCheck() bool { return k.checker != nil }

// HasUpstream reports whether there is an upstream.
func (k *Permissions) HasUpstream() bool { return k.upstream != nil }

// Refusal returns the refusal of a command that a script calls. checks holds the permission checks
// of the command. If an answer is unknown, Refusal permits the command, and the caller must repeat
// the run after Ask.
func (k *Permissions) Refusal(words []string, checks [][]string) string {
	switch {
	case k.hasAll:
		return ""
	case k.checker != nil:
		return k.checker.Refusal(syntax.Bytes(words))
	}
	for _, check := range checks {
		text, known := k.refusals[MapKey(check)]
		switch {
		case !known && len(k.openChecks) <= maxChecks:
			k.openChecks = append(k.openChecks, check)
		case text != "":
			return text
		}
	}
	return ""
}

// SetOutlet sets the outlet for messages if there is no upstream.
func (k *Permissions) SetOutlet(o Outlet) { k.outlet = o }

// CanPublish reports whether there is an upstream or an outlet for messages.
func (k *Permissions) CanPublish() bool { return k.upstream != nil || k.outlet != nil }

// HasOpenChecks reports whether the run had a permission check without an answer.
func (k *Permissions) HasOpenChecks() bool { return k != nil && len(k.openChecks) > 0 }

// Ask makes the open permission checks of the last run at the upstream.
func (k *Permissions) Ask(ctx context.Context) error {
	checks := k.openChecks
	k.openChecks = nil
	if len(k.refusals)+len(checks) > maxChecks {
		return fmt.Errorf("too many permissions to check: the limit is %d; use fewer keys", maxChecks)
	}
	texts, err := k.upstream.Refusals(ctx, checks)
	if err != nil {
		return err
	}
	for i, check := range checks {
		k.refusals[MapKey(check)] = texts[i]
	}
	return nil
}

// MapKey encodes a permission check as a key of a map. Lengths precede the words, which may have
// any byte.
func MapKey(words []string) string {
	var b strings.Builder
	for _, w := range words {
		fmt.Fprintf(&b, "%d:%s", len(w), w)
	}
	return b.String()
}

// Prepare calls Prepare of the client's upstream, or of the outlet if there is no upstream.
func (k *Permissions) Prepare(ctx context.Context, commands [][]string) (PreparedCommands, error) {
	if k.upstream == nil {
		return k.outlet.Prepare(ctx, commands)
	}
	return k.upstream.Prepare(ctx, commands)
}
