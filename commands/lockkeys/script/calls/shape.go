package calls

import (
	"redlock-proxy/internal/lua/clib"
	"redlock-proxy/internal/lua/syntax"
)

// Shape is the composition of a text.
type Shape []Part

// Part is a part of a text.
type Part struct {
	Kind PartKind
	// Text is the text of a Literal.
	Text string
	// Index is the index of a Key or Argument, from 1.
	Index int
}

// PartKind is the origin of a part.
type PartKind int

const (
	// UnknownPart is a part that may be any text.
	UnknownPart PartKind = iota
	// Literal is a text in the source.
	Literal
	// Key is an element of KEYS with a known index.
	Key
	// AnyKey is any element of KEYS.
	AnyKey
	// Argument is an element of ARGV with a known index.
	Argument
	// AnyArgument is any element of ARGV.
	AnyArgument
)

// Limits on the analysis of one expression.
const (
	maxShapes     = 32
	maxShapeParts = 32
	maxShapeDepth = 64
)

var unknownShapes = []Shape{{{Kind: UnknownPart}}}

// shapes returns the possible shapes of an expression as a text. For a value that is neither a text
// nor a number, such as nil or a table, it returns no shape, or an UnknownPart.
func (f *finder) shapes(e syntax.Expression, depth int) []Shape {
	if depth > maxShapeDepth || !f.step() {
		return unknownShapes
	}
	switch e := e.(type) {
	case *syntax.ConstantExpr:
		return constantShape(e.Value)
	case *syntax.ParenExpr:
		return f.shapes(e.Inner, depth+1)
	case *syntax.IndexExpr:
		return f.elementShapes(e.Object, e.Key)
	case *syntax.LocalExpr, *syntax.CapturedExpr, *syntax.GlobalExpr:
		return f.variableShapes(variableName(e), depth)
	case *syntax.BinaryExpr:
		return f.operationShapes(e, depth)
	case *syntax.CallExpr:
		if variableName(e.Function) == "tostring" && len(e.Args) == 1 {
			return f.shapes(e.Args[0], depth+1)
		}
	}
	return unknownShapes
}

func constantShape(value any) []Shape {
	switch v := value.(type) {
	case string:
		return []Shape{{{Kind: Literal, Text: v}}}
	case float64:
		return []Shape{{{Kind: Literal, Text: clib.FormatG(v, 17)}}}
	}
	return nil
}

// variableShapes returns the shapes of the values of a variable.
func (f *finder) variableShapes(name string, depth int) []Shape {
	values := f.values[name]
	if len(values) == 0 {
		return unknownShapes
	}
	var shapes []Shape
	for _, value := range values {
		shapes = append(shapes, f.shapes(value, depth+1)...)
		if len(shapes) > maxShapes || !f.spend(len(shapes)) {
			return unknownShapes
		}
	}
	return shapes
}

func (f *finder) operationShapes(e *syntax.BinaryExpr, depth int) []Shape {
	left, right := f.shapes(e.Left, depth+1), f.shapes(e.Right, depth+1)
	switch {
	case e.Operator == syntax.Or || e.Operator == syntax.And:
		if !f.spend(len(left) + len(right)) {
			return unknownShapes
		}
		return append(append([]Shape{}, left...), right...)
	case e.Operator != syntax.Concat || len(left)*len(right) > maxShapes:
		return unknownShapes
	}
	var shapes []Shape
	for _, l := range left {
		for _, r := range right {
			if len(l)+len(r) > maxShapeParts || !f.spend(len(l)+len(r)) {
				return unknownShapes
			}
			shapes = append(shapes, append(append(Shape{}, l...), r...))
		}
	}
	return shapes
}

// elementShapes returns the shapes of a table's element.
func (f *finder) elementShapes(object, key syntax.Expression) []Shape {
	var shapes []Shape
	for _, kind := range f.listKinds(object) {
		n, constant := 0.0, false
		if c, ok := key.(*syntax.ConstantExpr); ok {
			n, constant = c.Value.(float64)
		}
		switch {
		case kind == UnknownPart:
			return unknownShapes
		case constant && n >= 1 && n == float64(int(n)):
			shapes = append(shapes, Shape{{Kind: kind, Index: int(n)}})
		default:
			shapes = append(shapes, Shape{{Kind: anyKinds[kind]}})
		}
	}
	return shapes
}

var anyKinds = map[PartKind]PartKind{Key: AnyKey, Argument: AnyArgument}

// listKinds returns the kinds of table that an expression may be: Key for KEYS, Argument for ARGV,
// and UnknownPart for any other table.
func (f *finder) listKinds(e syntax.Expression) (kinds []PartKind) {
	for _, origin := range f.origins(e) {
		kind := UnknownPart
		switch o := origin.(type) {
		case *syntax.GlobalExpr:
			kind = map[string]PartKind{"KEYS": Key, "ARGV": Argument}[o.Name]
		case *paramExpr:
			if f.isCallback(o.function) && o.index < 2 {
				kind = [...]PartKind{Key, Argument}[o.index]
			}
		}
		kinds = append(kinds, kind)
	}
	return kinds
}
