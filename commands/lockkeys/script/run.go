package script

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/internal/lua"
)

// Input holds the input of a run.
type Input struct {
	Keys, Argv []string
	// ReadOnly refuses commands that write, as EVAL_RO does; a script can also declare it.
	ReadOnly bool
	// Call carries out redis.call and redis.pcall. Call calls charge before it processes bytes that
	// are not part of args. charge may end the run by a panic. The script gets an error reply like
	// any other reply. An error of Call ends the run, and Run returns this error.
	Call func(args []string, charge func(bytes int)) (keyspace.Reply, error)
	// MayRun reports whether the client may run a command, for redis.acl_check_cmd. known is false
	// if the command does not exist, or if the proxy cannot ask the upstream about it.
	MayRun func(args []string) (allowed, known bool)
	Limits Limits
	Share  Share
}

// errLimit ends a run at a limit of this package.
var errLimit = errors.New("script")

// run holds the state of one run of a script, for the functions that the script calls.
type run struct {
	Input
	script *Script
	random rand.PCG
	calls  int
	resp3  bool
}

// runOf returns the run to which a call belongs.
func runOf(c *lua.Call) *run { return c.State().Host.(*run) }

// Run executes the script. The error is that of Call, the cause of the end of ctx, or a
// *LimitError; any other failure is an error reply.
func (s *Script) Run(ctx context.Context, in Input) (keyspace.Reply, error) {
	in.Limits = in.Limits.withDefaults()
	in.ReadOnly = in.ReadOnly || s.readOnly
	r := &run{Input: in, script: s}
	return r.result(r.runInTime(ctx))
}

// runInTime executes the script in the remaining time of the allowance. Waits for slots use up this
// time.
func (r *run) runInTime(ctx context.Context) (keyspace.Reply, error) {
	j, err := r.Share.begin(ctx)
	if err != nil {
		return keyspace.Reply{}, err
	}
	defer j.end() // after the run's memory is released
	return r.execute(lua.NewState(j.limits(r.Limits.Bytes, smallRun)))
}

func (r *run) execute(state *lua.State) (reply keyspace.Reply, err error) {
	state.Host = r
	if luaErr := state.Protect(func() {
		var value lua.Value
		if value, err = state.Run(r.script.chunk, r.globals(state)); err == nil {
			reply, err = r.toReply(value)
		}
	}); luaErr != nil {
		err = luaErr
	}
	return reply, err
}

func (r *run) globals(state *lua.State) *lua.Table {
	g := state.NewGlobals(baseGlobals, 3)
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

// result returns the reply, or the error, for the way the run ended.
func (r *run) result(reply keyspace.Reply, err error) (keyspace.Reply, error) {
	var luaErr *lua.Error
	switch {
	case err == nil:
		return reply, nil
	case errors.As(err, &luaErr):
		text := r.errorText(luaErr)
		if len(text) <= r.Limits.Reply {
			return keyspace.ErrorReply(text), nil
		}
		err = fmt.Errorf("%w returned more than %d bytes", errLimit, r.Limits.Reply)
	}
	return keyspace.Reply{}, asLimitError(err, r.script.sha)
}

// errorText returns the error reply for an error that the script did not catch.
func (r *run) errorText(e *lua.Error) string {
	text := "ERR " + e.Error()
	if t, ok := e.Value.(*lua.Table); ok {
		if text, ok = lua.ToString(t.Get("err")); !ok {
			text = "ERR unknown error"
		}
	}
	return syntax.OneLine(fmt.Sprintf("%s script: %s, on %s:%d.",
		cString(text), r.script.sha, cString(e.Source), e.Line))
}

// cString returns a text up to the first zero byte, as C passes it on.
func cString(text string) string {
	head, _, _ := strings.Cut(text, "\x00")
	return head
}
