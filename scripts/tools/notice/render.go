package main

import (
	"bytes"
	"fmt"
	"strings"
)

const heading = `redlock-proxy
Copyright 2026 the redlock-proxy authors

It is licensed under the Apache License, Version 2.0, which is in the file LICENSE. The programs have the following in them, under the
licences of which the texts are below, unchanged. The source of each is where its name says: https:// and the name, or a Go module proxy.
"make notice" writes this file.

`

// render is the whole file: a table of the modules, then each text once, below those whose it is.
func render(parts []part) []byte {
	var out bytes.Buffer
	out.WriteString(heading)
	var order []string
	whose := map[string][]string{}
	for _, p := range parts {
		name := strings.TrimSpace(p.Path + " " + p.Version)
		fmt.Fprintf(&out, "- %s: %s\n", name, strings.Join(p.licences, " AND "))
		for _, text := range p.texts {
			if whose[text] == nil {
				order = append(order, text)
			}
			whose[text] = append(whose[text], name)
		}
	}
	for _, text := range order {
		fmt.Fprintf(&out, "\n%s\n%s\n\n%s\n", strings.Repeat("-", 80), strings.Join(whose[text], "\n"), text)
	}
	return out.Bytes()
}
