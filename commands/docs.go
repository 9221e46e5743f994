package commands

// docs is what COMMAND DOCS and COMMAND INFO say of a command.
type docs struct {
	group, summary, since, complexity string
	args                              []argument
	// keyed commands have a key as their first argument.
	keyed bool
	// keys are where the keys of an ordinary command stand; reads is set where it
	// changes none.
	keys  span
	reads bool
}

// argument is one of a command's arguments, as COMMAND DOCS describes it.
type argument struct {
	name, kind string // kind: key, string, integer, oneof …
	token      string // the word in front of it
	optional   bool
	options    []argument // of a oneof
}

func docsOf(group, summary, since string, args ...argument) docs {
	return docs{group: group, summary: summary, since: since, complexity: "O(1)", args: args}
}

// lockDocs are the docs of a lock command. since is the proxy's version.
func lockDocs(summary string, args ...argument) docs {
	return docs{
		group: proxyGroup, summary: summary, since: "0.1.0",
		complexity: "O(N) with N masters, in one round trip",
		args:       append([]argument{{name: "key", kind: "key"}}, args...), keyed: true,
	}
}

func text(name string) argument    { return argument{name: name, kind: "string"} }
func integer(name string) argument { return argument{name: name, kind: "integer"} }

func optional(name string) argument {
	return argument{name: name, kind: "string", optional: true}
}

func after(token, name string) argument {
	return argument{name: name, kind: "integer", token: token}
}

func oneOf(name string, options ...argument) argument {
	return argument{name: name, kind: "oneof", options: options}
}

// lockCommands are the proxy's own.
func lockCommands() []Command {
	ttl := oneOf("ttl", after("PX", "milliseconds"), after("EX", "seconds"))
	block := after("BLOCK", "milliseconds")
	block.optional = true
	return []Command{
		{Name: "lock", arity: -5, run: (*Table).cmdLock, docs: lockDocs(
			"Takes a lock on a majority of the masters. Returns its validity in milliseconds, or nil if another holds it.",
			text("token"), ttl, block)},
		{Name: "unlock", arity: 3, run: (*Table).cmdUnlock, docs: lockDocs(
			"Gives a lock back. Returns 1, or 0 if it is not held with that token (any more).",
			text("token"))},
		{Name: "extend", arity: -5, run: (*Table).cmdExtend, docs: lockDocs(
			"Gives a held lock a new TTL. Returns its validity in milliseconds, or nil if it is not held with that token any more.",
			text("token"), ttl)},
	}
}

// writeDocs appends the map that COMMAND DOCS has for a command.
func (d docs) write(out *Reply) {
	fields := [][2]string{{"summary", d.summary}, {"since", d.since}, {"group", d.group}, {"complexity", d.complexity}}
	n := len(fields)
	if len(d.args) > 0 {
		n++
	}
	out.Map(n)
	for _, f := range fields {
		out.Bulk(f[0])
		out.Bulk(f[1])
	}
	if len(d.args) > 0 {
		out.Bulk("arguments")
		writeArguments(d.args, out)
	}
}

func writeArguments(args []argument, out *Reply) {
	out.Array(len(args))
	for _, a := range args {
		a.write(out)
	}
}

func (a argument) write(out *Reply) {
	fields := [][2]string{{"name", a.name}, {"type", a.kind}}
	if len(a.options) == 0 {
		fields = append(fields, [2]string{"display_text", a.name})
	}
	if a.token != "" {
		fields = append(fields, [2]string{"token", a.token})
	}
	n := len(fields)
	if a.optional {
		n++
	}
	if len(a.options) > 0 {
		n++
	}
	if a.kind == "key" {
		n++
	}
	out.Map(n)
	for _, f := range fields {
		out.Bulk(f[0])
		out.Bulk(f[1])
	}
	if a.kind == "key" {
		out.Bulk("key_spec_index")
		out.Int(0)
	}
	if a.optional {
		out.Bulk("flags")
		out.Set(1)
		out.Status("optional")
	}
	if len(a.options) > 0 {
		out.Bulk("arguments")
		writeArguments(a.options, out)
	}
}
