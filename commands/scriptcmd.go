package commands

import (
	"context"
	"fmt"
)

// cmdScript is SCRIPT with its subcommands, where the proxy answers it itself.
func (t *Table) cmdScript(ctx context.Context, _ *Client, args [][]byte, out *Reply) {
	sub := lower(args[1])
	run, known := scriptSubcommands[sub]
	switch {
	case !known:
		unknownSubcommand("SCRIPT", args[1], out)
	case !fits(run.arity, len(args)):
		out.Error(wrongArity("script|" + sub))
	default:
		run.do(t, ctx, args[2:], out)
	}
}

// scriptSubcommands is never changed. The arity counts all words.
var scriptSubcommands = map[string]struct {
	arity int
	do    func(t *Table, ctx context.Context, args [][]byte, out *Reply)
}{
	"load":   {3, (*Table).scriptLoad},
	"exists": {-3, (*Table).scriptExists},
	"flush":  {-2, (*Table).scriptFlush},
	"kill": {2, func(_ *Table, _ context.Context, _ [][]byte, out *Reply) {
		out.Error("NOTBUSY No scripts in execution right now.")
	}},
	"help": {2, func(_ *Table, _ context.Context, _ [][]byte, out *Reply) {
		out.Statuses([]string{
			"SCRIPT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
			"EXISTS <sha1> [<sha1> ...]", "    Return information about the existence of the scripts.",
			"FLUSH [ASYNC|SYNC]", "    Forget all scripts.",
			"KILL", "    Has nothing to do: a script on lock keys ends by itself.",
			"LOAD <script>", "    Load a script without executing it.",
			"HELP", "    Print this help.",
		})
	}},
}

// LoadScript makes a script known to this proxy and, through the masters, to all
// others. The error is what the client is to be told; compiles is false if the script
// itself is wrong.
func (t *Table) LoadScript(ctx context.Context, body []byte) (sha string, compiles bool, err error) {
	s, err := t.scripts.Load(string(body))
	if err != nil {
		return "", false, err
	}
	return s.SHA(), true, t.opts.Scripts.Save(ctx, s.SHA(), s.Body())
}

// KnowsScript reports whether a script is known to this proxy or, through the
// masters, to any.
func (t *Table) KnowsScript(ctx context.Context, sha []byte) (bool, error) {
	s, err := t.findScript(ctx, lower(sha))
	return s != nil, err
}

// FlushScripts forgets all scripts, here and on the masters.
func (t *Table) FlushScripts(ctx context.Context) error {
	t.scripts.Flush()
	return t.opts.Scripts.Flush(ctx)
}

func (t *Table) scriptLoad(ctx context.Context, args [][]byte, out *Reply) {
	sha, compiles, err := t.LoadScript(ctx, args[0])
	switch {
	case err != nil && !compiles:
		out.Error(err.Error())
	case err != nil:
		out.Error(errorText(err))
	default:
		out.Bulk(sha)
	}
}

func (t *Table) scriptExists(ctx context.Context, args [][]byte, out *Reply) {
	known := make([]int64, len(args))
	for i, sha := range args {
		found, err := t.KnowsScript(ctx, sha)
		if err != nil {
			out.Error(errorText(err))
			return
		}
		if found {
			known[i] = 1
		}
	}
	out.Array(len(known))
	for _, n := range known {
		out.Int(n)
	}
}

func (t *Table) scriptFlush(ctx context.Context, args [][]byte, out *Reply) {
	if len(args) > 1 || len(args) == 1 && lower(args[0]) != "sync" && lower(args[0]) != "async" {
		out.Error("ERR SCRIPT FLUSH only support SYNC|ASYNC option")
		return
	}
	if err := t.FlushScripts(ctx); err != nil {
		out.Error(errorText(err))
		return
	}
	out.Status("OK")
}

// wrongArity is Redis' error for a wrong number of words.
func wrongArity(name string) string {
	return fmt.Sprintf("ERR wrong number of arguments for '%s' command", name)
}
