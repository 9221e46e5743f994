package calls

import "redlock-proxy/internal/lua/syntax"

// usage describes how the context uses the value of an expression.
type usage int

const (
	usageValue    usage = iota // the value can go anywhere
	usageCall                  // the value is called
	usageIndex                 // the value is indexed, or its length is taken
	usageVariable              // the value is assigned to a variable, and has no other use
	usageElements              // the value goes to a function that uses only its elements (ipairs)
)

// walker walks a syntax tree: it visits each statement and expression before its parts.
type walker struct {
	visitStatement  func(s syntax.Statement)
	visitExpression func(e syntax.Expression, p usage)
}

func (w *walker) walkStatements(statements []syntax.Statement) {
	for _, s := range statements {
		w.visitStatement(s)
		w.walkChildren(s)
	}
}

func (w *walker) walkChildren(s syntax.Statement) {
	switch s := s.(type) {
	case *syntax.LocalStmt:
		w.walkExpressions(s.Values, usageVariable)
	case *syntax.AssignStmt:
		valueUsage := usageVariable
		for _, target := range s.Targets {
			if variableName(target) == "" {
				valueUsage = usageValue
			}
			if index, ok := target.(*syntax.IndexExpr); ok {
				w.walkExpression(index.Object, usageIndex)
				w.walkExpression(index.Key, usageValue)
			}
		}
		w.walkExpressions(s.Values, valueUsage)
	case *syntax.CallStmt:
		w.walkExpression(s.Call, usageValue)
	case *syntax.DoStmt:
		w.walkStatements(s.Body)
	case *syntax.LoopStmt:
		w.walkExpression(s.Condition, usageValue)
		w.walkStatements(s.Body)
	case *syntax.IfStmt:
		w.walkExpressions(s.Conditions, usageValue)
		for _, body := range s.Bodies {
			w.walkStatements(body)
		}
	case *syntax.ForStmt:
		w.walkExpressions([]syntax.Expression{s.Start, s.Limit, s.Step}, usageValue)
		w.walkStatements(s.Body)
	case *syntax.ForInStmt:
		w.walkExpressions(s.Values, usageValue)
		w.walkStatements(s.Body)
	case *syntax.FunctionStmt:
		w.walkExpression(&syntax.FunctionExpr{Function: s.Function}, usageVariable)
	case *syntax.ReturnStmt:
		w.walkExpressions(s.Values, usageValue)
	}
}

func (w *walker) walkExpressions(all []syntax.Expression, p usage) {
	for _, e := range all {
		w.walkExpression(e, p)
	}
}

func (w *walker) walkExpression(e syntax.Expression, p usage) {
	w.visitExpression(e, p)
	switch e := e.(type) {
	case *syntax.IndexExpr:
		w.walkExpression(e.Object, usageIndex)
		w.walkExpression(e.Key, usageValue)
	case *syntax.CallExpr:
		w.walkCall(e)
	case *syntax.FunctionExpr:
		w.walkStatements(e.Function.Body)
	case *syntax.TableExpr:
		for _, item := range e.Items {
			if item.Key != nil {
				w.walkExpression(item.Key, usageValue)
			}
			w.walkExpression(item.Value, usageValue)
		}
	case *syntax.UnaryExpr:
		if e.Operator == '#' {
			w.walkExpression(e.Operand, usageIndex)
			return
		}
		w.walkExpression(e.Operand, usageValue)
	case *syntax.BinaryExpr:
		w.walkExpression(e.Left, usageValue)
		w.walkExpression(e.Right, usageValue)
	case *syntax.ParenExpr:
		w.walkExpression(e.Inner, p)
	}
}

func (w *walker) walkCall(e *syntax.CallExpr) {
	functionUsage := usageCall
	if e.Method != "" {
		functionUsage = usageIndex
	}
	w.walkExpression(e.Function, functionUsage)
	argUsage := usageValue
	if takesElements(e) {
		argUsage = usageElements
	}
	w.walkExpressions(e.Args, argUsage)
}

// takesElements reports whether the called function only uses the elements of its table argument.
func takesElements(e *syntax.CallExpr) bool {
	switch variableName(e.Function) {
	case "ipairs", "pairs", "unpack":
		return e.Method == ""
	}
	switch fieldName(e.Function, "table") {
	case "concat", "getn", "unpack":
		return e.Method == ""
	}
	return fieldName(e.Function, "cjson") == "encode" || fieldName(e.Function, "cmsgpack") == "pack"
}
