package command

import "redlock-proxy/commands/catalog/keys"

// OwnGroup is the group of the proxy's own commands. Redis uses this name for commands of modules.
const OwnGroup = "module"

// Docs holds the documentation of a command that COMMAND DOCS and COMMAND INFO return.
type Docs struct {
	Group, Summary, Since, Complexity string
	Args                              []Argument
	// FirstArgIsKey is set if the first argument is a key, KeysAreCounted if the first argument is
	// the number of keys that follow it.
	FirstArgIsKey, KeysAreCounted bool
	// Keys holds the places of the keys if neither is set. Reads is set if the command does not
	// change its keys.
	Keys  keys.Span
	Reads bool
	// Categories are the ACL categories of a command that Redis does not have, separated by blanks.
	Categories string
}

// DocsOf returns the documentation of a command without keys.
func DocsOf(group, summary, since string, args ...Argument) Docs {
	return Docs{Group: group, Summary: summary, Since: since, Complexity: "O(1)", Args: args}
}

// Argument describes an argument of a command for COMMAND DOCS.
type Argument struct {
	name, kind string // kind: key, string, integer, oneof …
	token      string // the fixed word before the argument, or the argument itself
	optional   bool
	multiple   bool
	options    []Argument // the choices of a oneof, or the parts of a block
}

// Key returns the argument that is the command's key.
func Key() Argument { return Argument{name: "key", kind: "key"} }

// Text returns an argument that may be any text.
func Text(name string) Argument { return Argument{name: name, kind: "string"} }

// Integer returns an argument that must be a number.
func Integer(name string) Argument { return Argument{name: name, kind: "integer"} }

// IntegerAfter returns a number that follows a fixed word.
func IntegerAfter(token, name string) Argument {
	return Argument{name: name, kind: "integer", token: token}
}

// GlobAfter returns a pattern that follows a fixed word.
func GlobAfter(token, name string) Argument {
	return Argument{name: name, kind: "pattern", token: token}
}

// Word returns an argument that is a fixed word.
func Word(token, name string) Argument { return Argument{name: name, kind: "pure-token", token: token} }

// OneOf returns a choice between arguments.
func OneOf(name string, options ...Argument) Argument {
	return Argument{name: name, kind: "oneof", options: options}
}

// Block returns arguments that follow each other.
func Block(name string, parts ...Argument) Argument {
	return Argument{name: name, kind: "block", options: parts}
}

// Optional returns the argument, marked as optional.
func Optional(a Argument) Argument {
	a.optional = true
	return a
}

// Multiple returns the argument, marked as one that may be repeated.
func Multiple(a Argument) Argument {
	a.multiple = true
	return a
}

// Write appends the map that COMMAND DOCS returns for a command.
func (d Docs) Write(out *Reply) {
	fields := Fields{"summary", d.Summary, "since", d.Since, "group", d.Group, "complexity", d.Complexity}
	if len(d.Args) > 0 {
		fields = append(fields, "arguments", describeArguments(d.Args))
	}
	out.Put(fields)
}

func describeArguments(args []Argument) []any {
	all := make([]any, len(args))
	for i, a := range args {
		all[i] = a.fields()
	}
	return all
}

func (a Argument) flags() (flags []string) {
	if a.optional {
		flags = append(flags, "optional")
	}
	if a.multiple {
		flags = append(flags, "multiple")
	}
	return flags
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
	if flags := a.flags(); len(flags) > 0 {
		fields = append(fields, "flags", func(out *Reply) {
			out.WriteSet(len(flags))
			for _, flag := range flags {
				out.WriteStatus(flag)
			}
		})
	}
	if len(a.options) > 0 {
		fields = append(fields, "arguments", describeArguments(a.options))
	}
	return fields
}
