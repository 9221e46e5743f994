package conf

import (
	"errors"
	"fmt"

	"github.com/goccy/go-yaml/ast"
)

var (
	errNoValue = errors.New(`no value (an empty text is written "")`)
	errNotText = errors.New("is not text; put it in quotes")
)

// yamlFile builds a layer from the nodes of one file.
type yamlFile struct {
	path           string
	lookup         func(string) (string, bool) // returns the variable for ${NAME}
	settings       layer
	failedSettings map[string]bool // settings with an error in errs
	errs           []error
}

// pairs returns the names and values of a document, which is empty or a mapping.
func pairs(path string, body ast.Node) ([]*ast.MappingValueNode, error) {
	switch n := body.(type) {
	case nil, *ast.CommentGroupNode:
		return nil, nil
	case *ast.MappingNode:
		return n.Values, nil
	}
	return nil, fmt.Errorf("%s:%d: expected lines of the form \"name: value\", found %s", path, lineOf(body),
		nodeKind(body))
}

func (f *yamlFile) addPair(pair *ast.MappingValueNode) {
	if _, plain := pair.Key.(*ast.StringNode); !plain {
		f.errs = append(f.errs, fmt.Errorf("%s:%d: expected the name of a setting, found %s", f.path, lineOf(pair.Key),
			nodeKind(pair.Key)))
		return
	}
	name := pair.Key.GetToken().Value
	where := f.originOf(pair.Key, name)
	s, known := findSetting(name)
	if !known {
		f.errs = append(f.errs, unknownSettingError(where, name, settingNames()))
		return
	}
	before := len(f.errs)
	e := f.readEntry(s, where, pair.Value)
	e.incomplete = len(f.errs) > before
	if err := f.settings.add(s, e, name); err != nil {
		f.fail(s, err)
	}
}

// readEntry reads the value of one setting. It appends problems to errs.
func (f *yamlFile) readEntry(s Setting, origin string, value ast.Node) entry {
	if !s.IsList {
		return entry{origin: origin, values: f.readScalar(s, origin, value)}
	}
	e := entry{origin: origin}
	list, ok := value.(*ast.SequenceNode)
	if !ok {
		f.fail(s, notListError(s, origin, value))
		return e
	}
	for _, item := range list.Values {
		e.values = append(e.values, f.readScalar(s, f.originOf(item, s.Name), item)...)
	}
	return e
}

// readScalar returns the one value of the node, or none if the value is invalid.
func (f *yamlFile) readScalar(s Setting, origin string, node ast.Node) []sourcedValue {
	written, ok := scalarText(node)
	if !ok {
		f.fail(s, fmt.Errorf("%s: %w", origin, notScalarError(node)))
		return nil
	}
	value, err := f.resolve(s, node, written)
	if err != nil { // shows the value as written, since a variable may contain a secret
		f.fail(s, fmt.Errorf("%s: %s", origin, valueProblem(s, written, err)))
		return nil
	}
	return []sourcedValue{{origin, value}}
}

// resolve returns the value of a text in the file, with variables expanded, if it is valid for s.
func (f *yamlFile) resolve(s Setting, node ast.Node, rawText string) (value string, err error) {
	value = rawText
	if _, isText := node.(*ast.StringNode); isText {
		value, err = expand(rawText, f.lookup)
	} else if s.isYAMLString {
		err = errNotText
	}
	if err != nil {
		return "", err
	}
	return value, s.check(value)
}

func (f *yamlFile) fail(s Setting, err error) {
	f.failedSettings[s.Name] = true
	f.errs = append(f.errs, err)
}

func (f *yamlFile) originOf(n ast.Node, name string) string {
	return fmt.Sprintf("%s:%d: %s", f.path, lineOf(n), redactIfURL(name))
}

// scalarText returns a scalar as written, without its quotes.
func scalarText(n ast.Node) (text string, ok bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	}
	return "", false
}

func notScalarError(n ast.Node) error {
	if _, null := n.(*ast.NullNode); null {
		return errNoValue
	}
	return fmt.Errorf("expected one value on one line, found %s", nodeKind(n))
}

func notListError(s Setting, origin string, n ast.Node) error {
	written, ok := scalarText(n)
	if !ok {
		return fmt.Errorf("%s: expected a list (a line \"- value\" for each), found %s", origin, nodeKind(n))
	}
	return fmt.Errorf("%s: %s", origin, valueProblem(s, written,
		errors.New(`is one value, but must be a list (a line "- value" for each)`)))
}

// nodeKind returns the kind of a node, for an error about a node of the wrong kind. It does not
// quote the content.
func nodeKind(n ast.Node) string {
	switch n.(type) {
	case *ast.NullNode:
		return "nothing"
	case *ast.StringNode:
		return "text"
	case *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "a number or a boolean"
	case *ast.LiteralNode:
		return "a block of lines"
	case *ast.SequenceNode:
		return "a list"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	}
	// The text covers all parts of YAML that the configuration does not use.
	return "an anchor, an alias or a tag"
}

func lineOf(n ast.Node) int { return n.GetToken().Position.Line }
