package command

import "redlock-proxy/commands/catalog/keys"

// OwnGroup is the group of the proxy's own commands, by Redis' name for commands that Redis does
// not have.
const OwnGroup = "module"

// Docs are what COMMAND DOCS and COMMAND INFO say of a command.
type Docs struct {
	Group, Summary, Since, Complexity string
	Args                              []Argument
	// Keyed commands have a key as their first argument.
	Keyed bool
	// Keys are where the keys of an ordinary command stand; Reads is set where a command of keys
	// changes none.
	Keys  keys.Span
	Reads bool
	// Categories are those in Redis' ACL, with blanks between them, of a command that Redis does
	// not have.
	Categories string
}

// DocsOf are those of a command without keys.
func DocsOf(group, summary, since string, args ...Argument) Docs {
	return Docs{Group: group, Summary: summary, Since: since, Complexity: "O(1)", Args: args}
}

// Argument is one of a command's arguments, as COMMAND DOCS describes it.
type Argument struct {
	name, kind string // kind: key, string, integer, oneof …
	token      string // the word in front of it
	optional   bool
	options    []Argument // of a oneof
}

// Key is the argument that is a command's key.
func Key() Argument { return Argument{name: "key", kind: "key"} }

// Text is an argument that may be any text.
func Text(name string) Argument { return Argument{name: name, kind: "string"} }

// Integer is an argument that must be a number.
func Integer(name string) Argument { return Argument{name: name, kind: "integer"} }

// After is a number after a word of its own.
func After(token, name string) Argument {
	return Argument{name: name, kind: "integer", token: token}
}

// GlobAfter is a pattern after a word of its own.
func GlobAfter(token, name string) Argument {
	return Argument{name: name, kind: "pattern", token: token}
}

// Word is an argument that is a word of its own.
func Word(token, name string) Argument { return Argument{name: name, kind: "pure-token", token: token} }

// OneOf is one of several arguments.
func OneOf(name string, options ...Argument) Argument {
	return Argument{name: name, kind: "oneof", options: options}
}

// Optional is an argument that may be left out.
func Optional(a Argument) Argument {
	a.optional = true
	return a
}

// Write appends the map that COMMAND DOCS has for a command.
func (d Docs) Write(out *Reply) {
	fields := Fields{"summary", d.Summary, "since", d.Since, "group", d.Group, "complexity", d.Complexity}
	if len(d.Args) > 0 {
		fields = append(fields, "arguments", described(d.Args))
	}
	out.Put(fields)
}

func described(args []Argument) []any {
	all := make([]any, len(args))
	for i, a := range args {
		all[i] = a.fields()
	}
	return all
}

func (a Argument) fields() Fields {
	fields := Fields{"name", a.name, "type", a.kind}
	if len(a.options) == 0 {
		fields = append(fields, "display_text", a.name)
	}
	if a.token != "" {
		fields = append(fields, "token", a.token)
	}
	if a.kind == "key" {
		fields = append(fields, "key_spec_index", 0)
	}
	if a.optional {
		fields = append(fields, "flags", func(out *Reply) {
			out.Set(1)
			out.Status("optional")
		})
	}
	if len(a.options) > 0 {
		fields = append(fields, "arguments", described(a.options))
	}
	return fields
}
