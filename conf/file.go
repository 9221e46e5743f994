package conf

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"redlock-proxy/internal/regular"
)

// maxFileSize limits the size of a configuration file in bytes. The time that the parser takes
// grows with the square of the size.
const maxFileSize = 64 << 10

// readFileLayer returns the settings in the file at path, or, if path is empty, in the file that
// REDLOCK_CONFIG names.
func (r *loader) readFileLayer(path string, env environment) (layer, []error) {
	where := "--" + FileFlag
	if path == "" {
		where = FileEnv
		path, _ = env.lookup(FileEnv)
	}
	if path == "" {
		return nil, nil
	}
	content, err := regular.Read(path, maxFileSize)
	if err != nil {
		r.fileBroken = true
		return nil, []error{fmt.Errorf("%s: %w", where, err)}
	}
	return r.parse(path, content, env)
}

// parse returns the settings in the content of a file. It needs the path for errors only.
func (r *loader) parse(path string, content []byte, env environment) (layer, []error) {
	found, err := parseYAML(path, content)
	if err != nil {
		r.fileBroken = true
		return nil, []error{err}
	}
	f := &yamlFile{path: path, lookup: env.lookup, settings: layer{}, failedSettings: r.failedSettings}
	for _, pair := range found {
		f.addPair(pair)
	}
	return f.settings, f.errs
}

// parseYAML returns the names and values of the one document in content. It accepts duplicate
// names, which the loader reports later, together with all other errors.
func parseYAML(path string, content []byte) ([]*ast.MappingValueNode, error) {
	if !utf8.Valid(content) {
		return nil, fmt.Errorf("%s: not UTF-8 text", path)
	}
	content = normalizeText(content)
	if line := tooDeepLine(content); line > 0 {
		return nil, fmt.Errorf("%s:%d: nested too deeply; settings are a list of names and values", path, line)
	}
	file, err := parser.ParseBytes(content, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, syntaxError(path, err)
	}
	switch len(file.Docs) {
	case 0:
		return nil, nil
	case 1:
		return pairs(path, file.Docs[0].Body)
	}
	return nil, fmt.Errorf("%s: %d YAML documents; write one", path, len(file.Docs))
}

// maxDepth limits the depth of nested values on a line. The memory that the parser takes grows with
// the square of the depth.
const maxDepth = 32

// tooDeepLine returns the number of the first line that is nested too deeply, or 0. It counts open
// flow collections, and the collections that begin on one line.
func tooDeepLine(content []byte) int {
	inFlow, onLine, line := 0, 0, 0
	for _, t := range lexer.Tokenize(string(content)) {
		if t.Position.Line != line {
			onLine, line = 0, t.Position.Line
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			inFlow++
		case token.SequenceEndType, token.MappingEndType:
			inFlow--
		case token.SequenceEntryType, token.MappingKeyType:
			onLine++
		}
		if inFlow > maxDepth || onLine > maxDepth {
			return t.Position.Line
		}
	}
	return 0
}

// syntaxError returns the parser's error without its quotes from the file, which may contain a
// password.
func syntaxError(path string, err error) error {
	if syntax, ok := errors.AsType[yaml.Error](err); ok && syntax.GetToken() != nil {
		return fmt.Errorf("%s:%d: %s", path, syntax.GetToken().Position.Line, redactIfURL(syntax.GetMessage()))
	}
	return fmt.Errorf("%s: not YAML", path)
}

// normalizeText removes a byte order mark, and the CR of each CR LF. The parser would take a byte
// order mark as a part of the first key, and count an empty line that ends with CR LF twice.
func normalizeText(content []byte) []byte {
	content = bytes.TrimPrefix(content, []byte("\ufeff"))
	return bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n"))
}
