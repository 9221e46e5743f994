package command

import "strings"

// Usage returns the command with its arguments, as HELP of redis-cli shows it.
func (c *Command) Usage() string {
	words := []string{strings.ToUpper(c.Name)}
	for _, a := range c.Docs.Args {
		words = append(words, a.usage())
	}
	return strings.Join(words, " ")
}

func (a Argument) usage() string {
	var text string
	switch {
	case len(a.options) > 0:
		all := make([]string, len(a.options))
		for i, o := range a.options {
			all[i] = o.usage()
		}
		separator := "|"
		if a.kind == "block" {
			separator = " "
		}
		text = strings.Join(all, separator)
	case a.kind == "pure-token":
		text = a.token
	case a.token != "":
		text = a.token + " " + a.name
	default:
		text = a.name
	}
	if a.multiple {
		text += " [" + text + " ...]"
	}
	if a.optional {
		return "[" + text + "]"
	}
	return text
}
