package lua

import "redlock-proxy/internal/lua/syntax"

// eval compiles an expression. The code returns only its first value.
func (g *compiler) eval(e syntax.Expression) eval {
	defer g.nest()()
	switch e := e.(type) {
	case *syntax.ConstantExpr:
		v := g.constant(e.Value)
		return func(*Call) Value { return v }
	case *syntax.LocalExpr:
		return readLocal(e.Local)
	case *syntax.CapturedExpr:
		return func(c *Call) Value { return c.closure.capturedCells[e.Index].value }
	case *syntax.GlobalExpr:
		return g.global(e)
	case *syntax.IndexExpr:
		return g.index(e)
	case *syntax.CallExpr:
		call := g.call(e)
		return func(c *Call) Value { return firstValue(call(c)) }
	case *syntax.DotsExpr:
		return func(c *Call) Value { return firstValue(c.varargs) }
	case *syntax.FunctionExpr:
		return g.function(e.Function)
	case *syntax.TableExpr:
		return g.table(e)
	case *syntax.UnaryExpr:
		return g.unary(e)
	case *syntax.BinaryExpr:
		return g.binary(e)
	}
	return g.eval(e.(*syntax.ParenExpr).Inner)
}

// constant returns a constant of the source. In C Lua's table of constants, 0 and -0 are the same
// key, so a function uses the first of them for both.
func (g *compiler) constant(v Value) Value {
	if n, ok := v.(float64); !ok || n != 0 {
		return v
	}
	if g.zero == nil {
		g.zero = &v
	}
	return *g.zero
}

// readLocal compiles a local variable.
func readLocal(l *syntax.Local) eval {
	slot := l.Slot
	if l.Captured {
		return func(c *Call) Value { return c.slots[slot].(*cell).value }
	}
	return func(c *Call) Value { return c.slots[slot] }
}

func (g *compiler) global(e *syntax.GlobalExpr) eval {
	hash, at := hashString(e.Name), &site{line: e.Line}
	var name Value = e.Name
	return func(c *Call) Value {
		if v := c.closure.env.getName(name, hash); v != nil {
			return v
		}
		return c.thread.index(c.closure.env, name, at)
	}
}

func (g *compiler) index(e *syntax.IndexExpr) eval {
	object, at := g.eval(e.Object), siteOf(e.Object, e.Line)
	if name, ok := constantString(e.Key); ok {
		hash := hashString(name)
		var key Value = name
		return func(c *Call) Value {
			o := object(c)
			if table, ok := o.(*Table); ok {
				if v := table.getName(key, hash); v != nil {
					return v
				}
			}
			return c.thread.index(o, key, at)
		}
	}
	key := g.eval(e.Key)
	return func(c *Call) Value {
		o := object(c)
		return c.thread.index(o, key(c), at)
	}
}

func constantString(e syntax.Expression) (string, bool) {
	c, ok := e.(*syntax.ConstantExpr)
	if !ok {
		return "", false
	}
	s, ok := c.Value.(string)
	return s, ok
}

// siteOf returns the site of an expression, with its name for messages.
func siteOf(e syntax.Expression, line int) *site {
	switch e := e.(type) {
	case *syntax.LocalExpr:
		return &site{"local", e.Local.Name, line}
	case *syntax.CapturedExpr:
		return &site{"upvalue", e.Name, line}
	case *syntax.GlobalExpr:
		return &site{"global", e.Name, line}
	case *syntax.IndexExpr:
		if name, ok := constantString(e.Key); ok {
			return &site{"field", name, line}
		}
		return &site{"field", "?", line}
	case *syntax.ParenExpr:
		if syntax.IsAssignable(e.Inner) {
			return siteOf(e.Inner, line)
		}
	}
	return &site{line: line}
}

// valueList compiles expressions. The code keeps all values of the last expression.
func (g *compiler) valueList(list []syntax.Expression) evalMany {
	if len(list) == 0 {
		return func(_ *Call, dst []Value) []Value { return dst }
	}
	last := list[len(list)-1]
	if !syntax.IsMulti(last) {
		return g.singleValues(list)
	}
	firstValues, lastValues := g.singleValues(list[:len(list)-1]), g.multiValue(last)
	return func(c *Call, dst []Value) []Value { return lastValues(c, firstValues(c, dst)) }
}

// singleValues compiles expressions with one value each. While the code computes the next value,
// the earlier values stay on the thread's stack, which is dst.
func (g *compiler) singleValues(list []syntax.Expression) evalMany {
	code := make([]eval, len(list))
	for i, e := range list {
		code[i] = g.eval(e)
	}
	return func(c *Call, dst []Value) []Value {
		t := c.thread
		for _, e := range code {
			t.stack = dst
			v := e(c)
			dst = append(dst, v)
		}
		return dst
	}
}

// multiValue compiles an expression with any number of values.
func (g *compiler) multiValue(e syntax.Expression) evalMany {
	call, ok := e.(*syntax.CallExpr)
	if !ok {
		return func(c *Call, dst []Value) []Value {
			c.thread.state.meter.ChargeWork(len(c.varargs) * argumentWork)
			return append(dst, c.varargs...)
		}
	}
	code := g.call(call)
	return func(c *Call, dst []Value) []Value {
		c.thread.stack = dst
		results := code(c)
		c.thread.state.meter.ChargeWork(len(results) * argumentWork)
		return append(dst, results...)
	}
}

// adjustedList compiles expressions. The code returns exactly n values.
func (g *compiler) adjustedList(list []syntax.Expression, n int) evalMany {
	values := g.valueList(list)
	g.work += n
	return func(c *Call, dst []Value) []Value {
		base := len(dst)
		dst = values(c, dst)
		for len(dst) < base+n {
			dst = append(dst, nil)
		}
		return dst[:base+n]
	}
}

// call compiles a call. The results of the code are valid until the next call.
func (g *compiler) call(e *syntax.CallExpr) func(*Call) []Value {
	defer g.nest()()
	push, at := g.pushCall(e)
	return func(c *Call) []Value {
		t := c.thread
		base := len(t.stack)
		f := push(c)
		c.line = at.line
		results := t.invoke(f, t.stack[base:], at)
		t.stack = t.stack[:base]
		return results
	}
}

// tailCall compiles the statement return f(…).
func (g *compiler) tailCall(e *syntax.CallExpr) exec {
	defer g.nest()()
	push, at := g.pushCall(e)
	return func(c *Call) flow {
		t := c.thread
		base := len(t.stack)
		c.tailCallee, c.tailSite = push(c), at
		c.result = c.Return(t.stack[base:]...)
		t.stack = t.stack[:base]
		c.line = at.line
		return flowTailCall
	}
}

// pushCall compiles the arguments and the function of a call. The compiled code pushes the
// arguments on the thread's stack, and returns the function.
func (g *compiler) pushCall(e *syntax.CallExpr) (push eval, at *site) {
	args := g.valueList(e.Args)
	if e.Method != "" {
		object, self := g.eval(e.Function), siteOf(e.Function, e.SelfLine)
		var name Value = e.Method
		return func(c *Call) Value {
			o := object(c)
			f := c.thread.index(o, name, self)
			c.thread.stack = args(c, append(c.thread.stack, o))
			return f
		}, &site{"method", e.Method, e.Line}
	}
	function := g.eval(e.Function)
	return func(c *Call) Value {
		f := function(c)
		c.thread.stack = args(c, c.thread.stack)
		return f
	}, siteOf(e.Function, e.Line)
}

// function compiles a function. The compiled code returns a new closure of this function.
func (g *compiler) function(f *syntax.Function) eval {
	p := newProto(g.meter, f)
	return func(c *Call) Value {
		m := &c.thread.state.meter
		m.Charge(closureSize + 8*len(p.captures))
		closure := &Closure{proto: p, env: c.closure.env, address: m.NewAddress()}
		if len(p.captures) > 0 {
			closure.capturedCells = make([]*cell, len(p.captures))
		}
		for i, capture := range p.captures {
			if capture.FromLocal {
				closure.capturedCells[i] = c.slots[capture.Index].(*cell)
			} else {
				closure.capturedCells[i] = c.closure.capturedCells[capture.Index]
			}
		}
		return closure
	}
}

// closureSize is the charge for a closure without its captured variables, in bytes.
const closureSize = 64

func (g *compiler) table(e *syntax.TableExpr) eval {
	var keys, values []eval
	positionalCount := 0
	var lastValues evalMany
	for i, item := range e.Items {
		if item.Key == nil && i == len(e.Items)-1 && syntax.IsMulti(item.Value) {
			lastValues = g.multiValue(item.Value)
			break
		}
		if item.Key == nil {
			keys = append(keys, nil)
			positionalCount++
		} else {
			keys = append(keys, g.eval(item.Key))
		}
		values = append(values, g.eval(item.Value))
	}
	namedCount, at := len(values)-positionalCount, &site{line: e.Line}
	return func(c *Call) Value {
		t := c.thread
		table := t.state.NewTable()
		if namedCount > 0 {
			table.reserve(namedCount)
		}
		base := len(t.stack)
		for i, value := range values {
			if keys[i] != nil {
				k := keys[i](c)
				t.setIndex(table, k, value(c), at)
				continue
			}
			v := value(c)
			t.stack = append(t.stack, v)
		}
		if lastValues != nil {
			t.stack = lastValues(c, t.stack)
		}
		table.fill(t.stack[base:])
		t.stack = t.stack[:base]
		return table
	}
}
