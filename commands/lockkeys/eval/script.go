package eval

import (
	"bytes"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/lockkeys/script"
	"redlock-proxy/internal/resp"
)

// scriptCommand returns SCRIPT for a proxy without an upstream.
func (s *Scripts) scriptCommand() *command.Command {
	c := command.NewRedisCommand("script", s.script,
		command.DocsOf("scripting", "A container for commands that manage scripts.", "2.6.0"))
	c.RequiresLogin = true
	return c
}

// MergedCommand returns SCRIPT for a proxy with an upstream. The proxy and the upstream must both
// have a script, because the script may run on lock keys or on keys of the upstream. If the
// upstream does not reply, the proxy runs SCRIPT alone.
func (s *Scripts) MergedCommand() *command.Command {
	c := command.NewRedisCommand("script", s.runMergedScript, command.Docs{})
	c.RequiresLogin, c.NeedsUpstreamReply, c.NeverForwards = true, true, beginsDebugging
	return c
}

// debugRefused is the error for SCRIPT DEBUG. A debugged script, and the debugger's own commands,
// could change lock keys at the upstream.
const debugRefused = "ERR SCRIPT DEBUG is not allowed: the proxy cannot check which lock keys a debugged script uses; " +
	"debug scripts on a separate Redis"

// beginsDebugging reports whether a SCRIPT command begins a debugging session.
func beginsDebugging(words [][]byte) bool {
	return len(words) > 1 && syntax.LowerCString(words[1]) == "debug" &&
		(len(words) != 3 || syntax.LowerCString(words[2]) != "no")
}

func (s *Scripts) script(c command.Call) {
	command.Subcommands{
		"load":   command.Sub(3, s.load),
		"exists": command.Sub(-3, s.exists),
		"flush":  command.Sub(-2, s.flush),
		"kill":   command.Sub(2, s.kill),
		"help": command.Help(
			"SCRIPT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
			"EXISTS <sha1> [<sha1> ...]", "    Return information about the existence of the scripts.",
			"FLUSH [ASYNC|SYNC]", "    Forget all scripts.",
			"KILL", "    Kill all long-running scripts.",
			"LOAD <script>", "    Load a script without executing it.",
			"HELP", "    Print this help.",
		),
	}.Run(c)
}

// load runs SCRIPT LOAD: this proxy caches the script, and the masters keep it for other proxies.
func (s *Scripts) load(c command.Call) {
	sc, err := s.cache.Load(c.Ctx, string(c.Args[2]), script.Share{Scheduler: s.scheduler, ClientDisconnected: c.Client.HasDisconnected})
	if err != nil {
		c.Out.WriteError(compileErrorReply(err))
		return
	}
	if err := s.opts.Store.Save(c.Ctx, sc.SHA(), sc.Body()); err != nil {
		c.Out.Fail(err)
		return
	}
	c.Out.WriteBulk(sc.SHA())
}

// exists runs SCRIPT EXISTS, for scripts that this proxy or the masters have.
func (s *Scripts) exists(c command.Call) {
	exists := make([]any, len(c.Args)-2)
	for i, sha := range c.Args[2:] {
		exists[i] = 0
		sc, err := s.find(c.Ctx, syntax.Lower(sha), script.Share{Scheduler: s.scheduler})
		if err != nil {
			c.Out.Fail(err)
			return
		}
		if sc != nil {
			exists[i] = 1
		}
	}
	c.Out.Put(exists)
}

// errNotBusy is Redis' reply to SCRIPT KILL if no script is running. The proxy sends it if no large
// run or compilation is running.
const errNotBusy = "NOTBUSY No scripts in execution right now."

// kill runs SCRIPT KILL: it ends the large runs and compilations of all clients. These runs have
// changed nothing.
func (s *Scripts) kill(c command.Call) {
	if s.scheduler.Kill() == 0 {
		c.Out.WriteError(errNotBusy)
		return
	}
	c.Out.WriteStatus("OK")
}

// flush runs SCRIPT FLUSH: this proxy and the masters forget all scripts.
func (s *Scripts) flush(c command.Call) {
	options := c.Args[2:]
	if len(options) > 1 ||
		len(options) == 1 && syntax.Lower(options[0]) != "sync" && syntax.Lower(options[0]) != "async" {
		c.Out.WriteError("ERR SCRIPT FLUSH only support SYNC|ASYNC option")
		return
	}
	s.cache.Flush()
	if err := s.opts.Store.Flush(c.Ctx); err != nil {
		c.Out.Fail(err)
		return
	}
	c.Out.WriteStatus("OK")
}

func (s *Scripts) runMergedScript(c command.Call) {
	if beginsDebugging(c.Args) {
		c.Out.WriteError(debugRefused)
		return
	}
	reply, err := c.Client.Ask(c.Ctx)
	if err != nil {
		s.script(c)
		return
	}
	isKill := syntax.Lower(c.Args[1]) == "kill" && len(c.Args) == 2
	if len(reply) == 0 || reply[0] == '-' && !(isKill && bytes.HasPrefix(reply, []byte("-NOTBUSY"))) {
		c.Out.WriteRaw(reply)
		return
	}
	ownReply := command.Reply{Proto: c.Out.Proto}
	ownCall := c
	ownCall.Out = &ownReply
	switch syntax.Lower(c.Args[1]) {
	case "load", "flush":
		s.script(ownCall)
		s.opts.Observe(c.Args)
	case "kill": // KILL succeeds if either side killed a script
		if s.script(ownCall); reply[0] == '-' {
			reply = ownReply.Bytes
		}
	case "exists":
		s.script(ownCall)
		reply = mergeExists(reply, ownReply.Bytes)
	}
	c.Out.WriteRaw(reply)
}

// mergeExists merges two replies to SCRIPT EXISTS: a script exists if both sides have it. Otherwise
// a client sends the script again, and both sides load it.
func mergeExists(upstreamReply, ownReply []byte) []byte {
	n, upstreamElements, ok := resp.Header(upstreamReply)
	m, ownElements, ownOK := resp.Header(ownReply)
	if !ok || !ownOK || n != m || ownReply[0] != '*' || len(ownReply) != len(upstreamReply) {
		return upstreamReply
	}
	merged := bytes.Clone(upstreamReply)
	for i := range upstreamElements {
		if ownElements[i] == '0' {
			merged[len(merged)-len(upstreamElements)+i] = '0'
		}
	}
	return merged
}
