package calls

import "redlock-proxy/internal/lua/syntax"

// place is where an expression stands.
type place int

const (
	placeValue    place = iota // its value can go anywhere
	placeFunction              // it is called
	placeObject                // it is indexed, or its length is taken
	placeNamed                 // a variable gets its value, and so does nothing else
	placeElements              // it is given to ipairs, pairs, unpack or the like, which hand its elements on
)

// walker goes through a tree: each statement and expression is shown before what is in it.
type walker struct {
	statement  func(s syntax.Statement)
	expression func(e syntax.Expression, p place)
}

func (w *walker) statements(all []syntax.Statement) {
	for _, s := range all {
		w.statement(s)
		w.within(s)
	}
}

func (w *walker) within(s syntax.Statement) {
	switch s := s.(type) {
	case *syntax.LocalStmt:
		w.expressions(s.Values, placeNamed)
	case *syntax.AssignStmt:
		named := placeNamed
		for _, target := range s.Targets {
			if variableName(target) == "" {
				named = placeValue
			}
			if index, ok := target.(*syntax.IndexExpr); ok {
				w.value(index.Object, placeObject)
				w.value(index.Key, placeValue)
			}
		}
		w.expressions(s.Values, named)
	case *syntax.CallStmt:
		w.value(s.Call, placeValue)
	case *syntax.DoStmt:
		w.statements(s.Body)
	case *syntax.LoopStmt:
		w.value(s.Condition, placeValue)
		w.statements(s.Body)
	case *syntax.IfStmt:
		w.expressions(s.Conditions, placeValue)
		for _, body := range s.Bodies {
			w.statements(body)
		}
	case *syntax.ForStmt:
		w.expressions([]syntax.Expression{s.Start, s.Limit, s.Step}, placeValue)
		w.statements(s.Body)
	case *syntax.ForInStmt:
		w.expressions(s.Values, placeValue)
		w.statements(s.Body)
	case *syntax.FunctionStmt:
		w.value(&syntax.FunctionExpr{Function: s.Function}, placeNamed)
	case *syntax.ReturnStmt:
		w.expressions(s.Values, placeValue)
	}
}

func (w *walker) expressions(all []syntax.Expression, p place) {
	for _, e := range all {
		w.value(e, p)
	}
}

func (w *walker) value(e syntax.Expression, p place) {
	w.expression(e, p)
	switch e := e.(type) {
	case *syntax.IndexExpr:
		w.value(e.Object, placeObject)
		w.value(e.Key, placeValue)
	case *syntax.CallExpr:
		w.call(e)
	case *syntax.FunctionExpr:
		w.statements(e.Function.Body)
	case *syntax.TableExpr:
		for _, item := range e.Items {
			if item.Key != nil {
				w.value(item.Key, placeValue)
			}
			w.value(item.Value, placeValue)
		}
	case *syntax.UnaryExpr:
		if e.Operator == '#' {
			w.value(e.Operand, placeObject)
			return
		}
		w.value(e.Operand, placeValue)
	case *syntax.BinaryExpr:
		w.value(e.Left, placeValue)
		w.value(e.Right, placeValue)
	case *syntax.ParenExpr:
		w.value(e.Inner, p)
	}
}

func (w *walker) call(e *syntax.CallExpr) {
	called := placeFunction
	if e.Method != "" {
		called = placeObject
	}
	w.value(e.Function, called)
	args := placeValue
	if takesElements(e) {
		args = placeElements
	}
	w.expressions(e.Args, args)
}

// takesElements reports whether a function does nothing with a table but to hand its elements on.
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
