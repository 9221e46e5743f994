package lua

var coroutineLibrary = []Entry{
	{"create", func(c *Call) []Value { return c.Return(c.State().newCoroutine(c.wantLuaFunction(1))) }},
	{"resume", coroutineResume},
	{"running", coroutineRunning},
	{"status", func(c *Call) []Value { return c.Return(c.wantCoroutine(1).status) }},
	{"wrap", coroutineWrap},
	{"yield", func(c *Call) []Value { return c.Return(c.thread.yieldWith(c.slots)...) }},
}

func (c *Call) wantLuaFunction(i int) *Closure {
	f, ok := c.Arg(i).(*Closure)
	if !ok {
		c.BadArg(i, "Lua function expected")
	}
	return f
}

func (c *Call) wantCoroutine(i int) *Coroutine {
	co, ok := c.Arg(i).(*Coroutine)
	if !ok {
		c.BadArg(i, "coroutine expected")
	}
	return co
}

func coroutineResume(c *Call) []Value {
	co := c.wantCoroutine(1)
	results, failed := c.thread.resumeWith(co, c.slots[1:])
	if failed != nil {
		return c.Return(false, failed.Value)
	}
	return c.Return(append([]Value{true}, results...)...)
}

func coroutineRunning(c *Call) []Value {
	if co := c.thread.coroutine; co != nil {
		return c.Return(co)
	}
	return c.Return(nil)
}

func coroutineWrap(c *Call) []Value {
	co := c.State().newCoroutine(c.wantLuaFunction(1))
	return c.Return(&Builtin{address: c.State().meter.address(), run: func(c *Call) []Value {
		results, failed := c.thread.resumeWith(co, c.slots)
		if failed == nil {
			return c.Return(results...)
		}
		if s, ok := ToString(failed.Value); ok {
			return c.Raise(c.caller.where() + s)
		}
		return c.Raise(failed.Value)
	}})
}
