package conf

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// maxFile is the size in bytes over which a file is not taken for a configuration. The parser's
// time grows with the square of the size.
const maxFile = 64 << 10

var errTooLarge = errors.New("is larger than 64 KiB, so it is no configuration")

// fileLayer reads the file that is named, or that the environment names, and returns the settings
// in it.
func (r *reading) fileLayer(path string, env environment) (layer, []error) {
	where := "--" + FileFlag
	if path == "" {
		where = FileEnv
		path, _ = env.lookup(FileEnv)
	}
	if path == "" {
		return nil, nil
	}
	content, err := readLimited(path)
	if err != nil {
		r.broken = true
		return nil, []error{fmt.Errorf("%s: %w", where, err)}
	}
	return r.parse(path, content, env)
}

// parse returns the settings in the content of a file. The path serves for the errors only.
func (r *reading) parse(path string, content []byte, env environment) (layer, []error) {
	found, err := parseYAML(path, content)
	if err != nil {
		r.broken = true
		return nil, []error{err}
	}
	f := &yamlFile{path: path, lookup: env.lookup, first: map[string]string{}, found: layer{}, failed: r.failed}
	for _, pair := range found {
		f.pair(pair)
	}
	return f.found, f.errs
}

func readLimited(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(content) > maxFile {
		err = fmt.Errorf("%q %w", path, errTooLarge)
	}
	return content, err
}

// parseYAML returns the names and values of the one document in content. Names given twice are let
// through, to be reported with all the other errors.
func parseYAML(path string, content []byte) ([]*ast.MappingValueNode, error) {
	if !utf8.Valid(content) {
		return nil, fmt.Errorf("%s: is not UTF-8 text", path)
	}
	file, err := parser.ParseBytes(plain(content), 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, syntaxError(path, err)
	}
	switch len(file.Docs) {
	case 0:
		return nil, nil
	case 1:
		return pairs(path, file.Docs[0].Body)
	}
	return nil, fmt.Errorf("%s: has %d YAML documents, but one is wanted", path, len(file.Docs))
}

// syntaxError leaves out the lines of the file that the parser quotes: they may hold a password.
func syntaxError(path string, err error) error {
	if syntax, ok := errors.AsType[yaml.Error](err); ok && syntax.GetToken() != nil {
		return fmt.Errorf("%s:%d: %s", path, syntax.GetToken().Position.Line, guarded(syntax.GetMessage()))
	}
	return fmt.Errorf("%s: is not YAML", path)
}

// plain takes away what Windows editors add: the parser takes a byte order mark for a part of the
// first key, and counts an empty line that ends in CR LF twice.
func plain(content []byte) []byte {
	content = bytes.TrimPrefix(content, []byte("\ufeff"))
	return bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n"))
}
