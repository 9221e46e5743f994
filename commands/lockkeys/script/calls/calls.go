package calls

import (
	"redlock-proxy/internal/lua/meter"
	"redlock-proxy/internal/lua/syntax"
)

// Site is a place in a source where redis.call or redis.pcall is called: for each argument what it
// may be. Rest says that any number of others may follow, and what these may be.
type Site struct {
	Args [][]Shape
	Rest []Shape
}

// Calls are the calls of commands in a source, as far as they can be seen without running it.
type Calls struct {
	Sites []Site
	// Hidden: there may be others.
	Hidden bool
	// Literals are all strings that are written in the source, and, where it compiles code when it
	// runs, those in such code.
	Literals []string
}

// Find finds the calls of commands in a source, given as its tree, and charges a meter for it. The
// analysis does not follow the order of what is done: a variable may hold all that is assigned to
// one of its name anywhere.
func Find(m *meter.Meter, main *syntax.Function) Calls {
	f := &finder{meter: m, assigned: map[string][]syntax.Expression{}}
	f.walk = walker{statement: f.assign, expression: f.register}
	f.walk.statements(main.Body)
	f.walk = walker{statement: f.mutates, expression: f.use}
	f.walk.statements(main.Body)
	if f.Literals = main.Literals; f.compiles {
		f.Literals = nested(m, main.Literals, main.Source)
	}
	return f.Calls
}

// nested are literals with those that are in them, of which each may be code. Where that is much,
// the innermost ones are missing.
func nested(m *meter.Meter, literals []string, name string) []string {
	read := 0
	for i := 0; i < len(literals); i++ {
		if read += len(literals[i]); read > maxSteps {
			break
		}
		if inner, err := syntax.Literals(m, literals[i], name); err == nil {
			literals = append(literals, inner...)
		}
	}
	return literals
}

// finder finds them: first what variables hold, then the calls.
type finder struct {
	Calls
	assigned map[string][]syntax.Expression
	compiles bool // code, when it runs
	walk     walker
	meter    *meter.Meter
	steps    int
}

// unknownExpr is the value of a variable of which nothing is known.
type unknownExpr struct{}

// assign notes what variables are given.
func (f *finder) assign(s syntax.Statement) {
	switch s := s.(type) {
	case *syntax.LocalStmt:
		for i, l := range s.Locals {
			f.give(l.Name, nth(s.Values, i))
		}
	case *syntax.AssignStmt:
		for i, target := range s.Targets {
			if name := variableName(target); name != "" {
				f.give(name, nth(s.Values, i))
			}
		}
	case *syntax.FunctionStmt:
		f.give(s.Local.Name, &syntax.FunctionExpr{Function: s.Function})
	case *syntax.ForStmt:
		f.give(s.Local.Name, &unknownExpr{})
	case *syntax.ForInStmt:
		for i, l := range s.Locals {
			f.give(l.Name, iterated(s.Values, i))
		}
	}
}

func (f *finder) give(name string, value syntax.Expression) {
	if value != nil {
		f.assigned[name] = append(f.assigned[name], value)
	}
}

// nth is the value of a list with this index: unknown from a last one that can have many on, nil
// behind the last.
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

// iterated is what the i-th variable of a for loop holds: of ipairs(list), an element is the
// second.
func iterated(values []syntax.Expression, i int) syntax.Expression {
	call, ok := values[0].(*syntax.CallExpr)
	if !ok || i != 1 || len(call.Args) != 1 {
		return &unknownExpr{}
	}
	if name := variableName(call.Function); name != "ipairs" && name != "pairs" {
		return &unknownExpr{}
	}
	return &syntax.IndexExpr{Object: call.Args[0], Key: &unknownExpr{}}
}

// variableName is the name of a variable; "" for any other expression.
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

// register gives the parameters of functions their values: those of a function that is registered
// as a Redis function are the keys and the arguments, of all others nothing is known.
func (f *finder) register(e syntax.Expression, _ place) {
	switch e := e.(type) {
	case *syntax.FunctionExpr:
		for i, p := range e.Function.Params {
			f.give(p.Name, &paramExpr{e.Function, i})
		}
		if e.Function.NeedsArg != nil {
			f.give("arg", &unknownExpr{})
		}
	case *syntax.CallExpr:
		if field(e.Function, "redis", "server") == "register_function" {
			f.give(registered, callback(e.Args))
		}
	}
}

// paramExpr is a parameter of a function.
type paramExpr struct {
	function *syntax.Function
	index    int
}

// registered is the name under which the callbacks of Redis functions are noted. No variable has
// it.
const registered = "function callbacks"

// callback is the function that a call of redis.register_function is given.
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
	for _, e := range f.assigned[registered] {
		if !f.step() {
			return false
		}
		for _, e := range f.origins(e) {
			if known, ok := e.(*syntax.FunctionExpr); ok && known.Function == fn {
				return true
			}
		}
	}
	return false
}

// maxSteps bounds the work on one source. Where that is not enough, there may be calls that are not
// seen.
const maxSteps = 1 << 18

// step reports whether there is still work to be done.
func (f *finder) step() bool { return f.spend(1) }

// spend is step of so many steps: what is copied counts, too.
func (f *finder) spend(steps int) bool {
	f.meter.Work(steps * meter.Step)
	if f.steps += steps; f.steps > maxSteps {
		f.Hidden = true
	}
	return f.steps <= maxSteps
}

// origins are the expressions that a variable may have its value from.
func (f *finder) origins(e syntax.Expression) []syntax.Expression {
	var all []syntax.Expression
	seen := map[string]bool{}
	var follow func(e syntax.Expression)
	follow = func(e syntax.Expression) {
		name := variableName(e)
		_, global := e.(*syntax.GlobalExpr)
		if global || name == "" || len(f.assigned[name]) == 0 { // a local redis may be the global one
			all = append(all, e)
		}
		if name == "" || seen[name] || !f.step() {
			return
		}
		seen[name] = true
		for _, value := range f.assigned[name] {
			if f.step() {
				follow(value)
			}
		}
	}
	follow(e)
	return all
}

// field is the name of a field of one of these global tables; "" for any other expression.
func field(e syntax.Expression, tables ...string) string {
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
