package rights

import (
	"context"
	"fmt"
	"strings"

	"redlock-proxy/commands/catalog/syntax"
)

// Upstream is what a client may do at the upstream, on its own connection there and
// as the user that it is.
type Upstream interface {
	// Refusals asks whether the client may do each of the commands. None is carried
	// out. A refusal is the upstream's own error text, empty where there is none. The
	// error says that it cannot be known.
	Refusals(ctx context.Context, commands [][]string) ([]string, error)
	// Prepare has the upstream take commands into one transaction. The error is a
	// *RefusedError where it refuses one; then, as with any error, nothing is pending.
	Prepare(ctx context.Context, commands [][]string) (Prepared, error)
}

// Outlet takes what programs leave to be done beside lock keys, where there is no upstream:
// messages alone. Its Prepare is as that of an Upstream.
type Outlet interface {
	Prepare(ctx context.Context, commands [][]string) (Prepared, error)
}

// Judge says at once what a client may do, where the users are the proxy's own and the upstream
// knows none of them.
type Judge interface {
	// Refusal is the error for a command of these words; empty where the client may send it.
	Refusal(words [][]byte) string
	// MayRead reports whether the client may know what a key holds.
	MayRead(key string) bool
}

// Prepared are commands that the upstream has taken and not carried out.
type Prepared interface {
	// Do has them carried out, in bounded time. The error says what was not, or that
	// it is not known.
	Do() error
	// Drop has them forgotten.
	Drop()
}

// RefusedError is a command that the upstream refused, with the text of its error.
type RefusedError struct{ Text string }

// Error is the upstream's text.
func (e *RefusedError) Error() string { return e.Text }

// UnknownError says that the upstream could not be asked what a client may do.
type UnknownError struct{ Cause error }

// Error says why.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("cannot check this client's permissions: %v", e.Cause)
}

// Unwrap is the cause.
func (e *UnknownError) Unwrap() error { return e.Cause }

// maxQuestions bounds what is asked for one command, script or transaction.
const maxQuestions = 1000

// Known is what is known of a client's rights while one command, script or transaction runs. Each
// right is asked for once. It is for one goroutine.
type Known struct {
	at      Upstream
	outlet  Outlet            // nil: there is none beside the upstream
	judge   Judge             // nil: the upstream is asked
	all     bool              // the client may do everything
	refused map[string]string // by question; empty where it is granted
	open    [][]string        // asked in the current run, and not known
}

// All reports whether the client may do everything.
func (k *Known) All() bool { return k.all }

// IsJudged reports whether nobody has to be asked, because the users are the proxy's own.
func (k *Known) IsJudged() bool { return k.judge != nil }

// HasUpstream reports whether there is one.
func (k *Known) HasUpstream() bool { return k.at != nil }

// Refusal is the refusal of what a script calls, by these questions where the upstream is to be
// asked. What is not known is taken as granted, and the run does not count.
func (k *Known) Refusal(words []string, questions [][]string) string {
	switch {
	case k.all:
		return ""
	case k.judge != nil:
		return k.judge.Refusal(syntax.Bytes(words))
	}
	for _, q := range questions {
		text, known := k.refused[QuestionKey(q)]
		switch {
		case !known && len(k.open) <= maxQuestions:
			k.open = append(k.open, q)
		case text != "":
			return text
		}
	}
	return ""
}

// Sends has messages go to an outlet, where there is no upstream.
func (k *Known) Sends(o Outlet) { k.outlet = o }

// MayPublish reports whether there is any way for messages.
func (k *Known) MayPublish() bool { return k.at != nil || k.outlet != nil }

// Unasked reports whether a run has come to what must be asked first.
func (k *Known) Unasked() bool { return k != nil && len(k.open) > 0 }

// Ask asks what the last run left open.
func (k *Known) Ask(ctx context.Context) error {
	open := k.open
	k.open = nil
	if len(k.refused)+len(open) > maxQuestions {
		return fmt.Errorf("more than %d rights would have to be asked for", maxQuestions)
	}
	texts, err := k.at.Refusals(ctx, open)
	if err != nil {
		return err
	}
	for i, q := range open {
		k.refused[QuestionKey(q)] = texts[i]
	}
	return nil
}

// QuestionKey is a question as a key of maps. A word may hold any byte, so its length
// stands before it.
func QuestionKey(words []string) string {
	var b strings.Builder
	for _, w := range words {
		fmt.Fprintf(&b, "%d:%s", len(w), w)
	}
	return b.String()
}

// Prepare is that of the client's upstream, or of the outlet where there is none.
func (k *Known) Prepare(ctx context.Context, commands [][]string) (Prepared, error) {
	if k.at == nil {
		return k.outlet.Prepare(ctx, commands)
	}
	return k.at.Prepare(ctx, commands)
}
