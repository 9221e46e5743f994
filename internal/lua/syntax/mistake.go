package syntax

import (
	"fmt"
	"strings"
)

// CompileError is a mistake in a chunk, in C Lua's words.
type CompileError struct {
	// Text is the mistake with its line: "name:1: '=' expected near 'x'".
	Text string
}

// Error is the mistake with its line.
func (e *CompileError) Error() string { return e.Text }

// maxChunkName is how much of a source a message shows.
const maxChunkName = 80

// ChunkName is a source's name in messages. "@name" and "=name" are names; all else is code, of
// which the first line is shown.
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
	const room = maxChunkName - len(`[string "..."] `) - 2
	line, _, cut := strings.Cut(source, "\n")
	if head, _, ok := strings.Cut(line, "\r"); ok {
		line, cut = head, true
	}
	if cut || len(line) > room {
		line = line[:min(len(line), room)] + "..."
	}
	return fmt.Sprintf(`[string "%s"]`, line)
}
