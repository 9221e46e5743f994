package script

import (
	"fmt"
	"strings"

	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/internal/lua"
	"redlock-proxy/internal/lua/clib"
)

// The version of Redis that scripts see. The package behaves like this version.
const (
	redisVersion       = "7.0.15"
	redisVersionNumber = 0x00070000 | 15
)

var redisLibrary = []lua.Entry{
	{Name: "call", Value: func(c *lua.Call) []lua.Value { return callCommand(c, true) }},
	{Name: "pcall", Value: func(c *lua.Call) []lua.Value { return callCommand(c, false) }},
	{Name: "log", Value: logMessage},
	{Name: "LOG_DEBUG", Value: 0.0},
	{Name: "LOG_VERBOSE", Value: 1.0},
	{Name: "LOG_NOTICE", Value: 2.0},
	{Name: "LOG_WARNING", Value: 3.0},
	{Name: "REDIS_VERSION_NUM", Value: float64(redisVersionNumber)},
	{Name: "REDIS_VERSION", Value: redisVersion},
	{Name: "setresp", Value: setResp},
	{Name: "sha1hex", Value: sha1Hex},
	{Name: "error_reply", Value: errorReply},
	{Name: "status_reply", Value: statusReply},
	{Name: "set_repl", Value: setRepl},
	{Name: "REPL_NONE", Value: 0.0},
	{Name: "REPL_AOF", Value: 1.0},
	{Name: "REPL_SLAVE", Value: 2.0},
	{Name: "REPL_REPLICA", Value: 2.0},
	{Name: "REPL_ALL", Value: 3.0},
	{Name: "acl_check_cmd", Value: checkCommand},
	{Name: "breakpoint", Value: func(c *lua.Call) []lua.Value { return c.Return(false) }},
	{Name: "debug", Value: func(*lua.Call) []lua.Value { return nil }},
	{Name: "replicate_commands", Value: func(c *lua.Call) []lua.Value { return c.Return(true) }},
}

// raise raises an error in the form of Redis' own functions: a table, without a position in its
// text.
func raise(c *lua.Call, text string) []lua.Value { return c.Raise(errorTable(c.State(), text)) }

// callCommand implements redis.call, which raises an error reply, and redis.pcall, which returns
// it.
func callCommand(c *lua.Call, raises bool) []lua.Value {
	r := runOf(c)
	args, problem := commandWords(c)
	if problem == "" && r.ReadOnly && isWriteCommand(args[0]) {
		problem = "Write commands are not allowed from read-only scripts."
	}
	if problem != "" {
		if raises {
			return raise(c, problem)
		}
		return c.Return(errorTable(c.State(), problem))
	}
	if r.calls++; r.calls > r.Limits.Calls {
		c.Abort(fmt.Errorf("%w called more than %d commands", errLimit, r.Limits.Calls))
	}
	reply, err := r.Call(args, c.State().Work)
	if err != nil {
		c.Abort(err)
	}
	v := r.toLua(c.State(), reply)
	if raises && reply.Kind == keyspace.Error {
		return c.Raise(v)
	}
	return c.Return(v)
}

// checkCommand implements redis.acl_check_cmd.
func checkCommand(c *lua.Call) []lua.Value {
	r := runOf(c)
	words, problem := commandWords(c)
	if problem != "" {
		return raise(c, problem)
	}
	may, isKnown := false, false
	if r.MayRun != nil {
		may, isKnown = r.MayRun(words)
	}
	if !isKnown {
		return raise(c, "Invalid command passed to redis.acl_check_cmd()")
	}
	return c.Return(may)
}

// commandWords returns the words of a command. Numbers keep all their digits.
func commandWords(c *lua.Call) (words []string, problem string) {
	if c.NArgs() == 0 {
		return nil, "Please specify at least one argument for this redis lib call"
	}
	words = make([]string, c.NArgs())
	for i, v := range c.Args() {
		switch v := v.(type) {
		case string:
			words[i] = v
		case float64:
			words[i] = clib.FormatG(v, 17)
		default:
			return nil, "Lua redis lib command arguments must be strings or integers"
		}
	}
	return words, ""
}

// logMessage checks its arguments as Redis does. It logs nothing.
func logMessage(c *lua.Call) []lua.Value {
	if c.NArgs() < 2 {
		return raise(c, "redis.log() requires two arguments or more.")
	}
	n, ok := c.State().Number(c.Arg(1))
	if !ok {
		return raise(c, "First argument must be a number (log level).")
	}
	level := clib.Truncate(n)
	if level < 0 || level > 3 {
		return raise(c, "Invalid debug level.")
	}
	return nil
}

func setResp(c *lua.Call) []lua.Value {
	if c.NArgs() != 1 {
		return raise(c, "redis.setresp() requires one argument.")
	}
	n, _ := c.State().Number(c.Arg(1))
	version := clib.Truncate(n)
	if version != 2 && version != 3 {
		return raise(c, "RESP version must be 2 or 3.")
	}
	runOf(c).resp3 = version == 3
	return nil
}

func sha1Hex(c *lua.Call) []lua.Value {
	if c.NArgs() != 1 {
		return raise(c, "wrong number of arguments")
	}
	text, _ := lua.ToString(c.Arg(1)) // Redis hashes the empty text for any other type
	c.State().Charge(len(text))
	return c.ReturnText(SHA(text))
}

func errorReply(c *lua.Call) []lua.Value {
	text, ok := c.Arg(1).(string)
	if !ok || c.NArgs() != 1 {
		return c.Return(errorTable(c.State(), "wrong number or type of arguments"))
	}
	if !strings.HasPrefix(text, "-") {
		text = "-" + text
	}
	return c.Return(errorTable(c.State(), text))
}

func statusReply(c *lua.Call) []lua.Value {
	text, ok := c.Arg(1).(string)
	if !ok || c.NArgs() != 1 {
		return c.Return(errorTable(c.State(), "wrong number or type of arguments"))
	}
	t := c.State().NewTable()
	c.State().Set(t, "ok", text)
	return c.Return(t)
}

func setRepl(c *lua.Call) []lua.Value {
	if c.NArgs() != 1 {
		return raise(c, "redis.set_repl() requires two arguments.")
	}
	n, _ := c.State().Number(c.Arg(1))
	if int32(clib.Truncate(n))&^3 != 0 {
		return raise(c, "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.")
	}
	return nil
}
