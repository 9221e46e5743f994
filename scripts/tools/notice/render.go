package main

import (
	"bytes"
	"fmt"
	"strings"
)

const heading = `redlock-proxy
Copyright 2026 the redlock-proxy authors

It is licensed under the Apache License, Version 2.0: see the file LICENSE. The programs contain the following modules,
under the licences whose texts are below, unchanged. The source of each module is at https:// followed by its name, and
in Go module proxies. "make notice" writes this file.

`

// render returns NOTICE: a list of the modules, then each text once, below the names of the modules
// that contain it.
func render(sections []section) []byte {
	var out bytes.Buffer
	out.WriteString(heading)
	var order []string
	modulesOf := map[string][]string{}
	for _, p := range sections {
		name := strings.TrimSpace(p.Path + " " + p.Version)
		fmt.Fprintf(&out, "- %s: %s\n", name, strings.Join(p.licences, " AND "))
		for _, text := range p.texts {
			if modulesOf[text] == nil {
				order = append(order, text)
			}
			modulesOf[text] = append(modulesOf[text], name)
		}
	}
	for _, text := range order {
		fmt.Fprintf(&out, "\n%s\n%s\n\n%s\n", strings.Repeat("-", 80), strings.Join(modulesOf[text], "\n"), text)
	}
	return out.Bytes()
}
