package lua

func (g *coder) statement(s statement) exec {
	switch s := s.(type) {
	case *localStmt:
		return g.local(s)
	case *assignStmt:
		return g.assign(s)
	case *callStmt:
		call := g.call(s.call)
		return func(c *Call) flow {
			call(c)
			return goesOn
		}
	case *doStmt:
		return g.block(s.body)
	case *loopStmt:
		if s.repeat {
			return g.repeat(s)
		}
		return g.while(s)
	case *ifStmt:
		return g.ifElse(s)
	case *forStmt:
		return g.numericFor(s)
	case *forInStmt:
		return g.genericFor(s)
	case *functionStmt:
		return g.localFunction(s)
	case *returnStmt:
		return g.ret(s)
	}
	return func(*Call) flow { return broke }
}

func (g *coder) local(s *localStmt) exec {
	if len(s.locals) == 1 && len(s.values) == 1 {
		l, value := s.locals[0], g.eval(s.values[0])
		if slot := l.slot; !l.captured {
			return func(c *Call) flow {
				c.slots[slot] = value(c)
				return goesOn
			}
		}
		return func(c *Call) flow {
			l.set(c, value(c))
			return goesOn
		}
	}
	values := g.adjusted(s.values, len(s.locals))
	return func(c *Call) flow {
		t := c.thread
		base := len(t.stack)
		t.stack = values(c, t.stack)
		for i, l := range s.locals {
			l.set(c, t.stack[base+i])
		}
		t.stack = t.stack[:base]
		return goesOn
	}
}

func (g *coder) localFunction(s *functionStmt) exec {
	l, function := s.local, g.function(s.function)
	return func(c *Call) flow {
		if !l.captured {
			c.slots[l.slot] = function(c)
			return goesOn
		}
		own := &cell{} // before the function, which captures it
		c.slots[l.slot] = own
		own.value = function(c)
		return goesOn
	}
}

func (g *coder) ret(s *returnStmt) exec {
	if len(s.values) == 1 {
		if call, ok := s.values[0].(*callExpr); ok {
			return g.tailCall(call)
		}
		if !isMulti(s.values[0]) {
			value := g.eval(s.values[0])
			return func(c *Call) flow {
				c.result = c.Return(value(c))
				return returned
			}
		}
	}
	values := g.list(s.values)
	return func(c *Call) flow {
		t := c.thread
		base := len(t.stack)
		t.stack = values(c, t.stack)
		c.result = c.Return(t.stack[base:]...)
		t.stack = t.stack[:base]
		return returned
	}
}

func (g *coder) while(s *loopStmt) exec {
	condition, body := g.condition(s.condition), g.block(s.body)
	return func(c *Call) flow {
		for condition(c) {
			c.thread.state.meter.step()
			if f := body(c); f == broke {
				break
			} else if f != goesOn {
				return f
			}
		}
		return goesOn
	}
}

func (g *coder) repeat(s *loopStmt) exec {
	condition, body := g.condition(s.condition), g.block(s.body)
	return func(c *Call) flow {
		for {
			c.thread.state.meter.step()
			if f := body(c); f == broke {
				return goesOn
			} else if f != goesOn {
				return f
			}
			if condition(c) {
				return goesOn
			}
		}
	}
}

func (g *coder) ifElse(s *ifStmt) exec {
	conditions := make([]func(*Call) bool, len(s.conditions))
	bodies := make([]exec, len(s.bodies))
	for i, e := range s.conditions {
		conditions[i] = g.condition(e)
	}
	for i, b := range s.bodies {
		bodies[i] = g.block(b)
	}
	return func(c *Call) flow {
		for i, condition := range conditions {
			if condition(c) {
				return bodies[i](c)
			}
		}
		if len(bodies) > len(conditions) {
			return bodies[len(conditions)](c)
		}
		return goesOn
	}
}

func (g *coder) numericFor(s *forStmt) exec {
	first, last, by, body := g.eval(s.start), g.eval(s.limit), g.eval(s.step), g.block(s.body)
	l, line := s.local, s.line
	return func(c *Call) flow {
		a, b, d := first(c), last(c), by(c)
		i, ok := ToNumber(a)
		if !ok {
			c.fail(line, "'for' initial value must be a number")
		}
		limit, ok := ToNumber(b)
		if !ok {
			c.fail(line, "'for' limit must be a number")
		}
		step, ok := ToNumber(d)
		if !ok {
			c.fail(line, "'for' step must be a number")
		}
		for i = i - step + step; step > 0 && i <= limit || step <= 0 && i >= limit; i += step { // rounded as in C Lua
			c.thread.state.meter.step()
			l.set(c, i)
			if f := body(c); f == broke {
				break
			} else if f != goesOn {
				return f
			}
		}
		return goesOn
	}
}

func (g *coder) genericFor(s *forInStmt) exec {
	values, body := g.adjusted(s.values, 3), g.block(s.body)
	at := &site{"local", forGenerator, s.line}
	return func(c *Call) flow {
		t := c.thread
		base := len(t.stack)
		t.stack = values(c, t.stack)
		copy(c.slots[s.hidden:], t.stack[base:])
		t.stack = t.stack[:base]
		for {
			t.state.meter.step()
			c.line = s.line
			if !s.advance(c, at) {
				return goesOn
			}
			if f := body(c); f == broke {
				return goesOn
			} else if f != goesOn {
				return f
			}
		}
	}
}

// forGenerator is what C Lua calls the iterator of a for loop.
const forGenerator = "(for generator)"

// advance asks the iterator for the next values of the variables.
func (s *forInStmt) advance(c *Call, at *site) bool {
	t := c.thread
	hidden := c.slots[s.hidden : s.hidden+3]
	t.enterGo()
	results := t.invoke(hidden[0], hidden[1:3:3], at)
	t.goCalls--
	control := first(results)
	if control == nil {
		return false
	}
	hidden[2] = control
	for i, l := range s.locals {
		var v Value
		if i < len(results) {
			v = results[i]
		}
		l.set(c, v)
	}
	return true
}

func (g *coder) assign(s *assignStmt) exec {
	if len(s.targets) == 1 && len(s.values) == 1 {
		return g.assignOne(s.targets[0], g.eval(s.values[0]), s.line)
	}
	// Objects and keys first, then the values; then the assignments from the last to the first.
	var places []eval
	stores := make([]func(c *Call, place []Value, v Value), len(s.targets))
	offsets := make([]int, len(s.targets))
	for i, target := range s.targets {
		offsets[i] = len(places)
		if e, ok := target.(*indexExpr); ok {
			places = append(places, g.eval(e.object), g.eval(e.key))
		}
		stores[i] = g.store(target, s.line)
	}
	values := g.adjusted(s.values, len(s.targets))
	return func(c *Call) flow {
		t := c.thread
		base := len(t.stack)
		for _, place := range places {
			v := place(c)
			t.stack = append(t.stack, v)
		}
		t.stack = values(c, t.stack)
		for i := len(stores) - 1; i >= 0; i-- {
			stores[i](c, t.stack[base+offsets[i]:], t.stack[base+len(places)+i])
		}
		t.stack = t.stack[:base]
		return goesOn
	}
}

// store assigns a value; place begins with the object and the key of an index.
func (g *coder) store(target expression, line int) func(c *Call, place []Value, v Value) {
	switch e := target.(type) {
	case *indexExpr:
		at := siteOf(e.object, line)
		return func(c *Call, place []Value, v Value) { c.thread.setIndex(place[0], place[1], v, at) }
	case *localExpr:
		return func(c *Call, _ []Value, v Value) { e.local.assign(c, v) }
	case *capturedExpr:
		return func(c *Call, _ []Value, v Value) { c.closure.captured[e.index].value = v }
	}
	name := target.(*globalExpr).name
	at := &site{line: line}
	return func(c *Call, _ []Value, v Value) { c.thread.setIndex(c.closure.env, name, v, at) }
}

func (g *coder) assignOne(target expression, value eval, line int) exec {
	if e, ok := target.(*indexExpr); ok {
		object, key, at := g.eval(e.object), g.eval(e.key), siteOf(e.object, line)
		return func(c *Call) flow {
			o, k := object(c), key(c)
			v := value(c)
			c.thread.setIndex(o, k, v, at)
			return goesOn
		}
	}
	store := g.store(target, line)
	return func(c *Call) flow {
		store(c, nil, value(c))
		return goesOn
	}
}

// assign gives a variable another value.
func (l *local) assign(c *Call, v Value) {
	if l.captured {
		c.slots[l.slot].(*cell).value = v
		return
	}
	c.slots[l.slot] = v
}
