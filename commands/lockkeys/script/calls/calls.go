package calls

import (
	"slices"

	"redlock-proxy/internal/lua/meter"
	"redlock-proxy/internal/lua/syntax"
)

// Site describes a call of redis.call or redis.pcall in a source, with the possible shapes of each
// argument. If Rest is not nil, any number of arguments with these shapes may follow.
type Site struct {
	Args [][]Shape
	Rest []Shape
}

// Calls holds the calls of commands in a source, as far as the source shows them.
type Calls struct {
	Sites []Site
	// Hidden is true if the source may contain further calls.
	Hidden bool
	// Literals holds all strings in the source. If the source compiles code at run time, Literals
	// also has the strings in that code.
	Literals []string
}

// Find finds the calls of commands in a source, given as its syntax tree, and charges a meter for
// the work. The analysis ignores the order of statements: a variable may hold any value that any
// statement assigns to a variable of this name.
func Find(m *meter.Meter, main *syntax.Function) Calls {
	f := &finder{meter: m, values: map[string][]syntax.Expression{}}
	f.walker = walker{visitStatement: f.assign, visitExpression: f.collectParams}
	f.walker.walkStatements(main.Body)
	f.walker = walker{visitStatement: f.findChanges, visitExpression: f.visit}
	f.walker.walkStatements(main.Body)
	if f.Literals = main.Literals; f.compilesCode {
		f.Literals = withNestedLiterals(m, main.Literals, main.Source)
	}
	return f.Calls
}

// withNestedLiterals returns literals and the literals within them, because each may be code. If
// that is too much work, the innermost literals are missing.
func withNestedLiterals(m *meter.Meter, literals []string, name string) []string {
	bytesRead := 0
	for i := 0; i < len(literals); i++ {
		if bytesRead += len(literals[i]); bytesRead > maxSteps {
			break
		}
		if inner, err := syntax.Literals(m, literals[i], name); err == nil {
			literals = append(literals, inner...)
		}
	}
	return literals
}

// finder finds the calls: first it collects the values of variables, then the calls.
type finder struct {
	Calls
	values       map[string][]syntax.Expression
	compilesCode bool // the source compiles code at run time
	walker       walker
	meter        *meter.Meter
	steps        int
}

// unknownExpr is an unknown value of a variable.
type unknownExpr struct{}

// assign collects the values of variables.
func (f *finder) assign(s syntax.Statement) {
	switch s := s.(type) {
	case *syntax.LocalStmt:
		for i, l := range s.Locals {
			f.addValue(l.Name, nth(s.Values, i))
		}
	case *syntax.AssignStmt:
		for i, target := range s.Targets {
			if name := variableName(target); name != "" {
				f.addValue(name, nth(s.Values, i))
			}
		}
	case *syntax.FunctionStmt:
		f.addValue(s.Local.Name, &syntax.FunctionExpr{Function: s.Function})
	case *syntax.ForStmt:
		f.addValue(s.Local.Name, &unknownExpr{})
	case *syntax.ForInStmt:
		for i, l := range s.Locals {
			f.addValue(l.Name, loopValue(s.Values, i))
		}
	}
}

func (f *finder) addValue(name string, value syntax.Expression) {
	if value != nil {
		f.values[name] = append(f.values[name], value)
	}
}

// nth returns the expression of the i-th value of a list, or nil if the list has no such value. It
// returns an unknownExpr if the value may be a further result of the last expression.
func nth(values []syntax.Expression, i int) syntax.Expression {
	last := len(values) - 1
	switch {
	case i < last || i == last && i == 0 && !syntax.IsMulti(values[i]):
		return values[i]
	case last < 0 || i > last && !syntax.IsMulti(values[last]):
		return nil
	case i == last:
		return values[i]
	}
	return &unknownExpr{}
}

// loopValue returns the value of the i-th variable of a for loop. With ipairs(list) or pairs(list),
// the second variable is an element of the list.
func loopValue(values []syntax.Expression, i int) syntax.Expression {
	call, ok := values[0].(*syntax.CallExpr)
	if !ok || i != 1 || len(call.Args) != 1 {
		return &unknownExpr{}
	}
	if name := variableName(call.Function); name != "ipairs" && name != "pairs" {
		return &unknownExpr{}
	}
	return &syntax.IndexExpr{Object: call.Args[0], Key: &unknownExpr{}}
}

// variableName returns the name of a variable; "" for any other expression.
func variableName(e syntax.Expression) string {
	switch e := e.(type) {
	case *syntax.LocalExpr:
		return e.Local.Name
	case *syntax.CapturedExpr:
		return e.Name
	case *syntax.GlobalExpr:
		return e.Name
	case *syntax.ParenExpr:
		return variableName(e.Inner)
	}
	return ""
}

// collectParams collects the values of function parameters. A callback of a Redis function gets
// keys and arguments; parameters of other functions are unknown.
func (f *finder) collectParams(e syntax.Expression, _ usage) {
	switch e := e.(type) {
	case *syntax.FunctionExpr:
		for i, p := range e.Function.Params {
			f.addValue(p.Name, &paramExpr{e.Function, i})
		}
		if e.Function.ArgTable != nil {
			f.addValue("arg", &unknownExpr{})
		}
	case *syntax.CallExpr:
		if fieldName(e.Function, "redis", "server") == "register_function" {
			f.addValue(callbackName, callback(e.Args))
		}
	}
}

// paramExpr is a parameter of a function.
type paramExpr struct {
	function *syntax.Function
	index    int
}

// callbackName is the name under which collectParams collects the callbacks of Redis functions. No
// variable can have this name.
const callbackName = "function callbacks"

// callback returns the function in a call of redis.register_function.
func callback(args []syntax.Expression) syntax.Expression {
	if len(args) == 2 {
		return args[1]
	}
	if len(args) == 1 {
		if t, ok := args[0].(*syntax.TableExpr); ok {
			for _, item := range t.Items {
				if c, ok := item.Key.(*syntax.ConstantExpr); ok && c.Value == "callback" {
					return item.Value
				}
			}
		}
	}
	return nil
}

// isCallback reports whether a function is registered as a Redis function.
func (f *finder) isCallback(fn *syntax.Function) bool {
	for _, e := range f.values[callbackName] {
		if !f.step() {
			return false
		}
		for _, e := range f.origins(e) {
			if callback, ok := e.(*syntax.FunctionExpr); ok && callback.Function == fn {
				return true
			}
		}
	}
	return false
}

// maxSteps limits the work on one source. Beyond this limit, some calls may be missing.
const maxSteps = 1 << 18

// step reports whether the limit on the work allows one more step.
func (f *finder) step() bool { return f.spend(1) }

// spend charges several steps of work, for example for copied shapes. It reports whether the limit
// allows them, and sets Hidden if not.
func (f *finder) spend(steps int) bool {
	f.meter.ChargeWork(steps * meter.Step)
	if f.steps += steps; f.steps > maxSteps {
		f.Hidden = true
	}
	return f.steps <= maxSteps
}

// origins returns the expressions whose values an expression may have: it follows variables,
// parentheses, and and or. It does not recurse, because a source may chain any number of these.
func (f *finder) origins(e syntax.Expression) []syntax.Expression {
	var origins []syntax.Expression
	seen := map[string]bool{}
	for next := []syntax.Expression{e}; len(next) > 0; {
		e := next[len(next)-1]
		next = next[:len(next)-1]
		switch e := e.(type) {
		case *syntax.ParenExpr:
			next = append(next, e.Inner)
			continue
		case *syntax.BinaryExpr:
			if (e.Operator == syntax.Or || e.Operator == syntax.And) && f.spend(2) {
				next = append(next, e.Right, e.Left)
				continue
			}
		}
		name := variableName(e)
		_, global := e.(*syntax.GlobalExpr)
		// A local variable named redis may be the global one.
		if global || name == "" || len(f.values[name]) == 0 {
			origins = append(origins, e)
		}
		if name == "" || seen[name] || !f.spend(1+len(f.values[name])) {
			continue
		}
		seen[name] = true
		for _, value := range slices.Backward(f.values[name]) {
			next = append(next, value)
		}
	}
	return origins
}

// fieldName returns the name of a field of one of the given global tables; "" for any other
// expression.
func fieldName(e syntax.Expression, tables ...string) string {
	index, ok := e.(*syntax.IndexExpr)
	if !ok {
		return ""
	}
	object, ok := index.Object.(*syntax.GlobalExpr)
	key, constant := index.Key.(*syntax.ConstantExpr)
	if !ok || !constant {
		return ""
	}
	for _, t := range tables {
		if text, ok := key.Value.(string); ok && object.Name == t {
			return text
		}
	}
	return ""
}
