package syntax

import (
	"fmt"
	"strings"
)

// CompileError is an error in a source, with C Lua's text.
type CompileError struct {
	// Text includes the line: "name:1: '=' expected near 'x'".
	Text string
}

// Error returns the text.
func (e *CompileError) Error() string { return e.Text }

// maxChunkName limits a source's name in messages, in bytes.
const maxChunkName = 80

// ChunkName returns a source's name in messages. "@name" and "=name" are names. Any other text is
// code, and its first line is the name.
func ChunkName(source string) string {
	switch {
	case strings.HasPrefix(source, "="):
		return source[1:min(len(source), maxChunkName)]
	case strings.HasPrefix(source, "@"):
		if name := source[1:]; len(name) > maxChunkName-8 {
			return "..." + name[len(name)-(maxChunkName-8):]
		}
		return source[1:]
	}
	const maxLine = maxChunkName - len(`[string "..."] `) - 2
	line, _, cut := strings.Cut(source, "\n")
	if head, _, ok := strings.Cut(line, "\r"); ok {
		line, cut = head, true
	}
	if cut || len(line) > maxLine {
		line = line[:min(len(line), maxLine)] + "..."
	}
	return fmt.Sprintf(`[string "%s"]`, line)
}
