package calls

import (
	"redlock-proxy/internal/lua/clib"
	"redlock-proxy/internal/lua/syntax"
)

// Shape is what a text is put together from.
type Shape []Part

// Part is a part of a text.
type Part struct {
	Kind PartKind
	// Text is the part itself, of a Literal.
	Text string
	// Index counts from 1, of Key and Argument.
	Index int
}

// PartKind says where a part comes from.
type PartKind int

const (
	// Unseen is a part of which nothing is known.
	Unseen PartKind = iota
	// Literal is written in the source.
	Literal
	// Key is an element of KEYS with a known number.
	Key
	// AnyKey is any element of KEYS.
	AnyKey
	// Argument is an element of ARGV with a known number.
	Argument
	// AnyArgument is any element of ARGV.
	AnyArgument
)

// Bounds on how much is found out of one expression.
const (
	maxShapes     = 32
	maxShapeParts = 32
	maxShapeDepth = 64
)

var unseen = []Shape{{{Kind: Unseen}}}

// shapes are what an expression may be as a text. What is no text (nil, a table) is left out or
// unseen.
func (f *finder) shapes(e syntax.Expression, depth int) []Shape {
	if depth > maxShapeDepth || !f.step() {
		return unseen
	}
	switch e := e.(type) {
	case *syntax.ConstantExpr:
		return constantShape(e.Value)
	case *syntax.ParenExpr:
		return f.shapes(e.Inner, depth+1)
	case *syntax.IndexExpr:
		return f.element(e.Object, e.Key)
	case *syntax.LocalExpr, *syntax.CapturedExpr, *syntax.GlobalExpr:
		return f.held(variableName(e), depth)
	case *syntax.BinaryExpr:
		return f.operation(e, depth)
	case *syntax.CallExpr:
		if variableName(e.Function) == "tostring" && len(e.Args) == 1 {
			return f.shapes(e.Args[0], depth+1)
		}
	}
	return unseen
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

// held are the shapes of what a variable holds.
func (f *finder) held(name string, depth int) []Shape {
	values := f.assigned[name]
	if len(values) == 0 {
		return unseen
	}
	var all []Shape
	for _, value := range values {
		all = append(all, f.shapes(value, depth+1)...)
		if len(all) > maxShapes || !f.spend(len(all)) {
			return unseen
		}
	}
	return all
}

func (f *finder) operation(e *syntax.BinaryExpr, depth int) []Shape {
	left, right := f.shapes(e.Left, depth+1), f.shapes(e.Right, depth+1)
	switch {
	case e.Operator == syntax.Or || e.Operator == syntax.And:
		if !f.spend(len(left) + len(right)) {
			return unseen
		}
		return append(append([]Shape{}, left...), right...)
	case e.Operator != syntax.Concat || len(left)*len(right) > maxShapes:
		return unseen
	}
	var all []Shape
	for _, l := range left {
		for _, r := range right {
			if len(l)+len(r) > maxShapeParts || !f.spend(len(l)+len(r)) {
				return unseen
			}
			all = append(all, append(append(Shape{}, l...), r...))
		}
	}
	return all
}

// element are the shapes of what a table has under a key.
func (f *finder) element(object, key syntax.Expression) []Shape {
	var all []Shape
	for _, kind := range f.lists(object) {
		n, constant := 0.0, false
		if c, ok := key.(*syntax.ConstantExpr); ok {
			n, constant = c.Value.(float64)
		}
		switch {
		case kind == Unseen:
			return unseen
		case constant && n >= 1 && n == float64(int(n)):
			all = append(all, Shape{{Kind: kind, Index: int(n)}})
		default:
			all = append(all, Shape{{Kind: anyOf[kind]}})
		}
	}
	return all
}

var anyOf = map[PartKind]PartKind{Key: AnyKey, Argument: AnyArgument}

// lists tells which of KEYS (Key) and ARGV (Argument) an expression may be; Unseen for any other
// table.
func (f *finder) lists(e syntax.Expression) (kinds []PartKind) {
	for _, origin := range f.origins(e) {
		kind := Unseen
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
