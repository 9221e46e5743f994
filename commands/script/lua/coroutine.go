package lua

import "iter"

// Coroutine is a thread of Lua. It runs in a goroutine of its own, but never at the same time as another of its run.
type Coroutine struct {
	thread   *thread
	body     Value
	status   string // suspended, running, normal or dead
	transfer []Value
	failed   *Error
	resume   func() (struct{}, bool)
	stop     func()
	yield    func(struct{}) bool
	address  uint32
}

// coroutineSize is what a coroutine is charged: a goroutine's stack, roughly.
const coroutineSize = 8 << 10

// maxResumes is how deep coroutines may resume each other.
const maxResumes = 150

func (s *State) newCoroutine(body Value) *Coroutine {
	s.meter.Charge(coroutineSize)
	co := &Coroutine{body: body, status: "suspended", address: s.meter.Address()}
	co.thread = &thread{state: s, coroutine: co}
	co.resume, co.stop = iter.Pull(co.run)
	s.coroutines = append(s.coroutines, co)
	return co
}

// run is the coroutine's goroutine, from its first resume.
func (co *Coroutine) run(yield func(struct{}) bool) {
	co.yield = yield
	defer func() {
		switch problem := recover().(type) {
		case nil:
		case *Error:
			co.failed = problem
		case stopped:
		default:
			panic(problem)
		}
	}()
	co.transfer = append([]Value(nil), co.thread.invoke(co.body, co.transfer, nil)...)
}

// stopped is the panic that ends a coroutine which nobody will resume.
type stopped struct{}

// endCoroutines ends the goroutines of a run.
func (s *State) endCoroutines() {
	for _, co := range s.coroutines {
		co.stop()
	}
	s.coroutines = nil
}

// resumeWith continues a coroutine until it yields, ends or fails.
func (t *thread) resumeWith(co *Coroutine, args []Value) (results []Value, failed *Error) {
	if co.status != "suspended" {
		return nil, &Error{Value: "cannot resume " + co.status + " coroutine"}
	}
	s := t.state
	if s.resumes >= maxResumes {
		return nil, &Error{Value: "C stack overflow"}
	}
	s.resumes++
	defer func() { s.resumes-- }()
	if t.coroutine != nil {
		t.coroutine.status = "normal"
	}
	co.status, co.transfer = "running", append([]Value(nil), args...)
	_, yielded := co.resume()
	if t.coroutine != nil {
		t.coroutine.status = "running"
	}
	if yielded {
		co.status = "suspended"
		return co.transfer, nil
	}
	co.status = "dead"
	s.meter.Nest(-co.thread.depth)
	co.thread.depth = 0
	return co.transfer, co.failed
}

// yieldWith suspends the coroutine that runs, and returns what it is resumed with.
func (t *thread) yieldWith(values []Value) []Value {
	co := t.coroutine
	if co == nil || t.goCalls > 0 {
		t.raise("attempt to yield across metamethod/C-call boundary")
	}
	co.transfer = append([]Value(nil), values...)
	if !co.yield(struct{}{}) {
		panic(stopped{})
	}
	return co.transfer
}

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
	return c.Return(&Builtin{address: c.State().meter.Address(), run: func(c *Call) []Value {
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
