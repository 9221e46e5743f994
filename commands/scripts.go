package commands

import (
	"context"
	"errors"
	"strings"

	"redlock-proxy/commands/register"
	"redlock-proxy/commands/script"
)

// What is kept of scripts in this process, in scripts and in bytes of their bodies.
const (
	maxScripts     = 1000
	maxScriptBytes = 16 << 20
)

// Scripts keep the bodies of scripts where all proxies find them.
type Scripts interface {
	// Save stores a body under its SHA-1, in lower-case hexadecimal.
	Save(ctx context.Context, sha, body string) error
	// Find returns the body with that SHA-1; ok is false if it is not there.
	Find(ctx context.Context, sha string) (body string, ok bool, err error)
	// Flush removes all bodies.
	Flush(ctx context.Context) error
}

// noScripts keeps none.
type noScripts struct{}

func (noScripts) Save(context.Context, string, string) error         { return nil }
func (noScripts) Find(context.Context, string) (string, bool, error) { return "", false, nil }
func (noScripts) Flush(context.Context) error                        { return nil }

// noScript is the answer to a SHA-1 that nobody knows. Client libraries decide by it
// to send the whole script.
const noScript = "NOSCRIPT No matching script. Please use EVAL."

// invocation is an EVAL or EVALSHA with its words read.
type invocation struct {
	script     *script.Script
	keys, argv []string
	readOnly   bool
}

// cmdEval is EVAL, EVALSHA and their read-only forms.
func (t *Table) cmdEval(ctx context.Context, c *Client, args [][]byte, out *Reply) {
	inv, failed, err := t.invocation(ctx, texts(args))
	switch {
	case err != nil:
		out.Error(errorText(err))
	case failed != "":
		out.Error(failed)
	default:
		t.carry(ctx, c, t.scriptProgram(c, inv), out)
	}
}

// invocation reads the words of an EVAL or EVALSHA. failed is the error reply where
// they are wrong, or there is no such script.
func (t *Table) invocation(ctx context.Context, words []string) (inv invocation, failed string, err error) {
	name := lower([]byte(words[0]))
	if failed := evalFailure(name, words); failed != "" {
		return inv, failed, nil
	}
	n, _ := parseInt([]byte(words[2]))
	inv = invocation{keys: words[3 : 3+n], argv: words[3+n:], readOnly: strings.HasSuffix(name, "_ro")}
	if strings.HasPrefix(name, "evalsha") {
		inv.script, err = t.findScript(ctx, lower([]byte(words[1])))
		if err == nil && inv.script == nil {
			failed = noScript
		}
		return inv, failed, err
	}
	if inv.script, err = t.scripts.Load(words[1]); err != nil {
		return inv, err.Error(), nil
	}
	return inv, "", nil
}

// evalFailure is Redis' error for the words of an EVAL or EVALSHA, or nothing.
func evalFailure(name string, words []string) string {
	if len(words) < 3 {
		return wrongArity(name)
	}
	if strings.HasPrefix(name, "evalsha") && len(words[1]) != shaLength {
		return noScript
	}
	n, err := parseInt([]byte(words[2]))
	switch {
	case err != nil:
		return errNotInteger.Error()
	case n > int64(len(words)-3):
		return "ERR Number of keys can't be greater than number of args"
	case n < 0:
		return "ERR Number of keys can't be negative"
	}
	return ""
}

// shaLength is that of a SHA-1 in hexadecimal.
const shaLength = 40

// findScript finds a script by its SHA-1, here or where all proxies keep them; nil
// if nobody knows it.
func (t *Table) findScript(ctx context.Context, sha string) (*script.Script, error) {
	if s, ok := t.scripts.Get(sha); ok {
		return s, nil
	}
	body, ok, err := t.opts.Scripts.Find(ctx, sha)
	if err != nil || !ok {
		return nil, err
	}
	return t.scripts.Load(body)
}

// scriptProgram is a script as a program.
func (t *Table) scriptProgram(c *Client, inv invocation) *program {
	keys := t.scriptKeys(inv)
	return &program{
		db: c.DB, keys: keys, guesses: t.habits.guesses(inv.script.SHA(), keys, inv.argv),
		run: func(ctx context.Context, s *register.Space) (register.Reply, [][]string, error) {
			calls := scriptCalls{table: t, space: s}
			reply, err := inv.script.Run(ctx, script.Input{Keys: inv.keys, Argv: inv.argv, ReadOnly: inv.readOnly, Call: calls.do})
			if over := (*script.LimitError)(nil); errors.As(err, &over) {
				err = &refusal{over.Error()}
			}
			return reply, calls.asides, err
		},
		committed: func(edits []register.Edit) { t.habits.learn(inv.script.SHA(), edits, inv.argv) },
	}
}

// scriptKeys are the lock keys that a script is going to use: of its KEYS, or, where
// it is given none, of what is written in its body and its arguments.
func (t *Table) scriptKeys(inv invocation) (keys []string) {
	candidates := inv.keys
	if len(candidates) == 0 {
		candidates = append(inv.script.Literals(), inv.argv...)
	}
	for _, key := range candidates {
		if t.lockKeys.Match([]byte(key)) {
			keys = append(keys, key)
		}
	}
	return distinct(keys)
}
