package calls

import "redlock-proxy/internal/lua/syntax"

// usage is the use that the context makes of the value of an expression.
type usage int

const (
	usageValue    usage = iota // the value can go anywhere
	usageCall                  // the value is called
	usageIndex                 // the value is indexed, or its length is taken
	usageVariable              // the value is assigned to a variable, and has no other use
	usageElements              // the value is passed to a function that uses only its elements, such as ipairs
)

// walker walks a syntax tree: it visits each statement and expression before its parts.
type walker struct {
	statement  func(s syntax.Statement)
	expression func(e syntax.Expression, p usage)
}

func (w *walker) statements(all []syntax.Statement) {
	for _, s := range all {
		w.statement(s)
		w.children(s)
	}
}

func (w *walker) children(s syntax.Statement) {
	switch s := s.(type) {
	case *syntax.LocalStmt:
		w.expressions(s.Values, usageVariable)
	case *syntax.AssignStmt:
		named := usageVariable
		for _, target := range s.Targets {
			if variableName(target) == "" {
				named = usageValue
			}
			if index, ok := target.(*syntax.IndexExpr); ok {
				w.value(index.Object, usageIndex)
				w.value(index.Key, usageValue)
			}
		}
		w.expressions(s.Values, named)
	case *syntax.CallStmt:
		w.value(s.Call, usageValue)
	case *syntax.DoStmt:
		w.statements(s.Body)
	case *syntax.LoopStmt:
		w.value(s.Condition, usageValue)
		w.statements(s.Body)
	case *syntax.IfStmt:
		w.expressions(s.Conditions, usageValue)
		for _, body := range s.Bodies {
			w.statements(body)
		}
	case *syntax.ForStmt:
		w.expressions([]syntax.Expression{s.Start, s.Limit, s.Step}, usageValue)
		w.statements(s.Body)
	case *syntax.ForInStmt:
		w.expressions(s.Values, usageValue)
		w.statements(s.Body)
	case *syntax.FunctionStmt:
		w.value(&syntax.FunctionExpr{Function: s.Function}, usageVariable)
	case *syntax.ReturnStmt:
		w.expressions(s.Values, usageValue)
	}
}

func (w *walker) expressions(all []syntax.Expression, p usage) {
	for _, e := range all {
		w.value(e, p)
	}
}

func (w *walker) value(e syntax.Expression, p usage) {
	w.expression(e, p)
	switch e := e.(type) {
	case *syntax.IndexExpr:
		w.value(e.Object, usageIndex)
		w.value(e.Key, usageValue)
	case *syntax.CallExpr:
		w.call(e)
	case *syntax.FunctionExpr:
		w.statements(e.Function.Body)
	case *syntax.TableExpr:
		for _, item := range e.Items {
			if item.Key != nil {
				w.value(item.Key, usageValue)
			}
			w.value(item.Value, usageValue)
		}
	case *syntax.UnaryExpr:
		if e.Operator == '#' {
			w.value(e.Operand, usageIndex)
			return
		}
		w.value(e.Operand, usageValue)
	case *syntax.BinaryExpr:
		w.value(e.Left, usageValue)
		w.value(e.Right, usageValue)
	case *syntax.ParenExpr:
		w.value(e.Inner, p)
	}
}

func (w *walker) call(e *syntax.CallExpr) {
	called := usageCall
	if e.Method != "" {
		called = usageIndex
	}
	w.value(e.Function, called)
	args := usageValue
	if takesElements(e) {
		args = usageElements
	}
	w.expressions(e.Args, args)
}

// takesElements reports whether a function only uses the elements of a table.
func takesElements(e *syntax.CallExpr) bool {
	switch variableName(e.Function) {
	case "ipairs", "pairs", "unpack":
		return e.Method == ""
	}
	switch field(e.Function, "table") {
	case "concat", "getn", "unpack":
		return e.Method == ""
	}
	return field(e.Function, "cjson") == "encode" || field(e.Function, "cmsgpack") == "pack"
}
