package lua

import "redlock-proxy/internal/lua/syntax"

func (g *compiler) statement(s syntax.Statement) exec {
	g.work += nodeWork
	switch s := s.(type) {
	case *syntax.LocalStmt:
		return g.local(s)
	case *syntax.AssignStmt:
		return g.assign(s)
	case *syntax.CallStmt:
		call := g.call(s.Call)
		return func(c *Call) flow {
			call(c)
			return flowNext
		}
	case *syntax.DoStmt:
		body, work := g.block(s.Body)
		g.work += work // the body always runs
		return body
	case *syntax.LoopStmt:
		if s.IsRepeat {
			return g.repeat(s)
		}
		return g.while(s)
	case *syntax.IfStmt:
		return g.ifElse(s)
	case *syntax.ForStmt:
		return g.numericFor(s)
	case *syntax.ForInStmt:
		return g.genericFor(s)
	case *syntax.FunctionStmt:
		return g.localFunction(s)
	case *syntax.ReturnStmt:
		return g.returnStmt(s)
	}
	return func(*Call) flow { return flowBreak }
}

func (g *compiler) local(s *syntax.LocalStmt) exec {
	if len(s.Locals) == 1 && len(s.Values) == 1 {
		l, value := s.Locals[0], g.eval(s.Values[0])
		if slot := l.Slot; !l.Captured {
			return func(c *Call) flow {
				c.slots[slot] = value(c)
				return flowNext
			}
		}
		return func(c *Call) flow {
			c.initLocal(l, value(c))
			return flowNext
		}
	}
	values := g.adjustedList(s.Values, len(s.Locals))
	return func(c *Call) flow {
		t := c.thread
		base := len(t.stack)
		t.stack = values(c, t.stack)
		for i, l := range s.Locals {
			c.initLocal(l, t.stack[base+i])
		}
		t.stack = t.stack[:base]
		return flowNext
	}
}

func (g *compiler) localFunction(s *syntax.FunctionStmt) exec {
	l, function := s.Local, g.function(s.Function)
	return func(c *Call) flow {
		if !l.Captured {
			c.slots[l.Slot] = function(c)
			return flowNext
		}
		variable := &cell{} // exists before the function, which captures it
		c.slots[l.Slot] = variable
		variable.value = function(c)
		return flowNext
	}
}

func (g *compiler) returnStmt(s *syntax.ReturnStmt) exec {
	if len(s.Values) == 1 {
		if call, ok := s.Values[0].(*syntax.CallExpr); ok {
			return g.tailCall(call)
		}
		if !syntax.IsMulti(s.Values[0]) {
			value := g.eval(s.Values[0])
			return func(c *Call) flow {
				c.result = c.Return(value(c))
				return flowReturn
			}
		}
	}
	values := g.valueList(s.Values)
	return func(c *Call) flow {
		t := c.thread
		base := len(t.stack)
		t.stack = values(c, t.stack)
		c.result = c.Return(t.stack[base:]...)
		t.stack = t.stack[:base]
		return flowReturn
	}
}

func (g *compiler) while(s *syntax.LoopStmt) exec {
	var condition func(*Call) bool
	iteration := g.workOf(func() { condition = g.condition(s.Condition) })
	body, work := g.block(s.Body)
	iteration += work
	return func(c *Call) flow {
		for condition(c) {
			c.thread.state.meter.ChargeWork(iteration)
			if f := body(c); f == flowBreak {
				break
			} else if f != flowNext {
				return f
			}
		}
		return flowNext
	}
}

func (g *compiler) repeat(s *syntax.LoopStmt) exec {
	var condition func(*Call) bool
	iteration := g.workOf(func() { condition = g.condition(s.Condition) })
	body, work := g.block(s.Body)
	iteration += work
	return func(c *Call) flow {
		for {
			c.thread.state.meter.ChargeWork(iteration)
			if f := body(c); f == flowBreak {
				return flowNext
			} else if f != flowNext {
				return f
			}
			if condition(c) {
				return flowNext
			}
		}
	}
}

func (g *compiler) ifElse(s *syntax.IfStmt) exec {
	conditions := make([]func(*Call) bool, len(s.Conditions))
	bodies, works := make([]exec, len(s.Bodies)), make([]int, len(s.Bodies))
	for i, e := range s.Conditions {
		conditions[i] = g.condition(e)
	}
	for i, b := range s.Bodies {
		bodies[i], works[i] = g.block(b)
	}
	return func(c *Call) flow {
		i := 0
		for i < len(conditions) && !conditions[i](c) {
			i++
		}
		if i == len(bodies) {
			return flowNext
		}
		c.thread.state.meter.ChargeWork(works[i])
		return bodies[i](c)
	}
}

func (g *compiler) numericFor(s *syntax.ForStmt) exec {
	startCode, limitCode, stepCode := g.eval(s.Start), g.eval(s.Limit), g.eval(s.Step)
	body, work := g.block(s.Body)
	l, line, iteration := s.Local, s.Line, blockWork+work
	number := func(c *Call, v Value, role string) float64 {
		n, ok := c.thread.state.Number(v)
		if !ok {
			c.fail(line, "'for' %s must be a number", role)
		}
		return n
	}
	return func(c *Call) flow {
		a, b, d := startCode(c), limitCode(c), stepCode(c)
		i, limit, step := number(c, a, "initial value"), number(c, b, "limit"), number(c, d, "step")
		// i - step + step rounds the first value of i as C Lua does.
		for i = i - step + step; step > 0 && i <= limit || step <= 0 && i >= limit; i += step {
			c.thread.state.meter.ChargeWork(iteration)
			c.initLocal(l, i)
			if f := body(c); f == flowBreak {
				break
			} else if f != flowNext {
				return f
			}
		}
		return flowNext
	}
}

func (g *compiler) genericFor(s *syntax.ForInStmt) exec {
	values := g.adjustedList(s.Values, 3)
	body, work := g.block(s.Body)
	at, iteration := &site{"local", forGenerator, s.Line}, blockWork+work+len(s.Locals)
	return func(c *Call) flow {
		t := c.thread
		base := len(t.stack)
		t.stack = values(c, t.stack)
		copy(c.slots[s.IteratorSlot:], t.stack[base:])
		t.stack = t.stack[:base]
		for {
			t.state.meter.ChargeWork(iteration)
			c.line = s.Line
			if !c.advance(s, at) {
				return flowNext
			}
			if f := body(c); f == flowBreak {
				return flowNext
			} else if f != flowNext {
				return f
			}
		}
	}
}

// forGenerator is C Lua's name for the iterator of a for loop.
const forGenerator = "(for generator)"

// advance calls the iterator, sets the variables, and reports whether the loop continues.
func (c *Call) advance(s *syntax.ForInStmt, at *site) bool {
	t := c.thread
	loopState := c.slots[s.IteratorSlot : s.IteratorSlot+3]
	t.enterGo()
	results := t.invoke(loopState[0], loopState[1:3:3], at)
	t.goCalls--
	control := firstValue(results)
	if control == nil {
		return false
	}
	loopState[2] = control
	for i, l := range s.Locals {
		var v Value
		if i < len(results) {
			v = results[i]
		}
		c.initLocal(l, v)
	}
	return true
}

func (g *compiler) assign(s *syntax.AssignStmt) exec {
	if len(s.Targets) == 1 && len(s.Values) == 1 {
		return g.assignOne(s.Targets[0], g.eval(s.Values[0]), s.Line)
	}
	// The code evaluates the objects and keys, and then the values. It assigns from the last target
	// to the first.
	var operands []eval
	stores := make([]func(c *Call, operands []Value, v Value), len(s.Targets))
	offsets := make([]int, len(s.Targets))
	for i, target := range s.Targets {
		offsets[i] = len(operands)
		if e, ok := target.(*syntax.IndexExpr); ok {
			operands = append(operands, g.eval(e.Object), g.eval(e.Key))
		}
		stores[i] = g.store(target, s.Line)
	}
	values := g.adjustedList(s.Values, len(s.Targets))
	return func(c *Call) flow {
		t := c.thread
		base := len(t.stack)
		for _, operand := range operands {
			v := operand(c)
			t.stack = append(t.stack, v)
		}
		t.stack = values(c, t.stack)
		for i := len(stores) - 1; i >= 0; i-- {
			stores[i](c, t.stack[base+offsets[i]:], t.stack[base+len(operands)+i])
		}
		t.stack = t.stack[:base]
		return flowNext
	}
}

// store compiles an assignment of a value. If the target is an index, operands begins with the
// object and the key.
func (g *compiler) store(target syntax.Expression, line int) func(c *Call, operands []Value, v Value) {
	g.work += nodeWork
	switch e := target.(type) {
	case *syntax.IndexExpr:
		at := siteOf(e.Object, line)
		return func(c *Call, operands []Value, v Value) { c.thread.setIndex(operands[0], operands[1], v, at) }
	case *syntax.LocalExpr:
		return func(c *Call, _ []Value, v Value) { c.assignLocal(e.Local, v) }
	case *syntax.CapturedExpr:
		return func(c *Call, _ []Value, v Value) { c.closure.capturedCells[e.Index].value = v }
	}
	name := target.(*syntax.GlobalExpr).Name
	at := &site{line: line}
	return func(c *Call, _ []Value, v Value) { c.thread.setIndex(c.closure.env, name, v, at) }
}

func (g *compiler) assignOne(target syntax.Expression, value eval, line int) exec {
	if e, ok := target.(*syntax.IndexExpr); ok {
		object, key, at := g.eval(e.Object), g.eval(e.Key), siteOf(e.Object, line)
		return func(c *Call) flow {
			o, k := object(c), key(c)
			v := value(c)
			c.thread.setIndex(o, k, v, at)
			return flowNext
		}
	}
	store := g.store(target, line)
	return func(c *Call) flow {
		store(c, nil, value(c))
		return flowNext
	}
}

// assignLocal sets a later value of a local variable.
func (c *Call) assignLocal(l *syntax.Local, v Value) {
	if l.Captured {
		c.slots[l.Slot].(*cell).value = v
		return
	}
	c.slots[l.Slot] = v
}
