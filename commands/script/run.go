package script

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"redlock-proxy/commands/register"
	"redlock-proxy/commands/script/lua"
)

// Input is what a run works on.
type Input struct {
	Keys, Argv []string
	// ReadOnly refuses commands that write, as EVAL_RO does; a script can also ask for it itself.
	ReadOnly bool
	// Call carries out redis.call and redis.pcall. An error reply is the script's to handle; an error ends the run, and Run returns it.
	Call func(args []string) (register.Reply, error)
	// Log is told what the script logs, with Redis' level (0 debug to 3 warning); nil if nobody wants to know.
	Log    func(level int, message string)
	Limits Limits
}

// LimitError says that a run was stopped at one of its limits, wherever in the script that was. What it had called must not count.
type LimitError struct{ reply string }

// Error is the error reply for the client.
func (e *LimitError) Error() string { return e.reply }

// errLimit is the end of a run over a limit of this package.
var errLimit = errors.New("script")

// run is a run of a script, for the functions that it calls.
type run struct {
	Input
	script *Script
	random generator
	json   jsonConfig
	calls  int
	resp3  bool
}

// runOf is the run that a function of Lua was called in.
func runOf(c *lua.Call) *run { return c.State().Host.(*run) }

// Run executes the script. The error is that of Call, the cause of the end of ctx, or a *LimitError; everything else is an error reply.
func (s *Script) Run(ctx context.Context, in Input) (register.Reply, error) {
	in.Limits = in.Limits.orDefaults()
	in.ReadOnly = in.ReadOnly || s.flags.NoWrites
	r := &run{Input: in, script: s, random: newGenerator(0), json: defaultJSON}
	state := lua.NewState(ctx, lua.Limits{Time: in.Limits.Time, Bytes: in.Limits.Bytes})
	state.Host = r
	var reply register.Reply
	var value lua.Value
	var err error
	if failed := state.Protect(func() {
		if value, err = state.Run(s.chunk, r.globals(state)); err == nil {
			reply, err = r.reply(value)
		}
	}); failed != nil {
		err = failed
	}
	return r.outcome(reply, err)
}

// globals are the run's global variables.
func (r *run) globals(state *lua.State) *lua.Table {
	g := state.NewGlobals(shared, 3)
	state.Set(g, "KEYS", textArray(state, r.Keys))
	state.Set(g, "ARGV", textArray(state, r.Argv))
	state.Set(g, "_G", g)
	g.Freeze()
	return g
}

func textArray(state *lua.State, texts []string) *lua.Table {
	values := make([]lua.Value, len(texts))
	for i, text := range texts {
		values[i] = text
	}
	return state.NewArray(values)
}

// outcome is what the client gets for how the run ended.
func (r *run) outcome(reply register.Reply, err error) (register.Reply, error) {
	var raised *lua.Error
	switch {
	case err == nil:
		return reply, nil
	case errors.As(err, &raised):
		return register.Fail(r.errorText(raised)), nil
	case errors.Is(err, lua.ErrTime), errors.Is(err, lua.ErrMemory), errors.Is(err, errLimit):
		return register.Reply{}, &LimitError{fmt.Sprintf("ERR %v script: %s.", err, r.script.sha)}
	}
	return register.Reply{}, err
}

// errorText is the error reply for an error that nothing in the script caught.
func (r *run) errorText(e *lua.Error) string {
	text := "ERR " + e.Error()
	if t, ok := e.Value.(*lua.Table); ok {
		if text, ok = lua.ToString(t.Get("err")); !ok {
			text = "ERR unknown error"
		}
	}
	return oneLine(fmt.Sprintf("%s script: %s, on %s:%d.", cString(text), r.script.sha, cString(e.Source), e.Line))
}

// cString is a text as C passes it on: up to a zero byte.
func cString(text string) string {
	head, _, _ := strings.Cut(text, "\x00")
	return head
}
