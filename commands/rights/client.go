package rights

import (
	"context"
	"fmt"
	"slices"

	"redlock-proxy/commands/catalog/syntax"
)

// Client is whom to ask what a client may do.
type Client struct {
	// Upstream is the client's own connection to the upstream. It is nil for a proxy
	// without one: then every client may do everything.
	Upstream Upstream
	// Judge says what the client may do, where the users are the proxy's own; else it is nil.
	Judge Judge
	// Unrestricted is set while it is known that the client may do everything at the
	// upstream, so that nothing must be asked.
	Unrestricted bool
}

// MayAll reports whether nobody has to be asked: the client may do everything.
func (c *Client) MayAll() bool { return c.Unrestricted || c.Upstream == nil && c.Judge == nil }

// Known begins to keep what is known of the client's rights.
func (c *Client) Known() *Known {
	return &Known{at: c.Upstream, judge: c.Judge, all: c.MayAll(), refused: map[string]string{}}
}

// Refusal is the error reply for a command that the client may not run, or of which that cannot be
// known; empty where it may.
func (c *Client) Refusal(ctx context.Context, words [][]byte) string {
	return c.refusal(ctx, words, func() [][]string { return Questions(syntax.Strings(words)) })
}

// RefusalOf is Refusal of a command that the upstream would decide on by itself, did it get it: of
// these words, as they are.
func (c *Client) RefusalOf(ctx context.Context, words ...string) string {
	return c.refusal(ctx, syntax.Bytes(words), func() [][]string { return [][]string{words} })
}

func (c *Client) refusal(ctx context.Context, words [][]byte, questions func() [][]string) string {
	switch {
	case c.MayAll():
		return ""
	case c.Judge != nil:
		return c.Judge.Refusal(words)
	}
	asked := questions()
	if len(asked) == 0 {
		return ""
	}
	if len(asked) > maxQuestions {
		return fmt.Sprintf("ERR more than %d rights would have to be asked for", maxQuestions)
	}
	refusals, err := c.Upstream.Refusals(ctx, asked)
	if err != nil {
		return "ERR " + err.Error()
	}
	if i := slices.IndexFunc(refusals, func(text string) bool { return text != "" }); i >= 0 {
		return refusals[i]
	}
	return ""
}

// Readable are those of the keys of which the client may know what they hold.
func (c *Client) Readable(ctx context.Context, keys []string) (readable []string, err error) {
	switch {
	case c.MayAll():
		return keys, nil
	case c.Judge != nil:
		return slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return !c.Judge.MayRead(key) }), nil
	}
	questions := make([][]string, len(keys))
	for i, key := range keys {
		questions[i] = questionOf("get", key)
	}
	refusals, err := c.Upstream.Refusals(ctx, questions)
	if err != nil {
		return nil, err
	}
	for i, text := range refusals {
		if text == "" {
			readable = append(readable, keys[i])
		}
	}
	return readable, nil
}
