package lua

import "redlock-proxy/internal/lua/meter"

// Builtin is a Go function that Lua can call.
type Builtin struct {
	run     func(*Call) []Value
	metered bool // the function charges for its work itself
	address uint32
}

// Closure is a Lua function with its captured variables.
type Closure struct {
	proto         *proto
	capturedCells []*cell
	env           *Table
	address       uint32
}

// cell holds a local variable that an inner function captures. It may outlive the variable's call.
type cell struct{ value Value }

// Call is one call of a Lua or Go function.
type Call struct {
	thread     *thread
	caller     *Call
	closure    *Closure // nil for a Go function
	site       *site    // site of the call in the caller; nil if Go code calls
	line       int      // the current line
	tailCalls  int      // number of calls that this call has replaced
	slots      []Value  // the local variables, or the arguments of a Go function
	varargs    []Value  // arguments for ...
	result     []Value  // the values of a return
	tailCallee Value    // the function of a tail call
	tailSite   *site
}

// site is a place in the source that uses a value, with the name of the value for messages.
type site struct {
	kind, name string // "global", "print"; empty if the value has no name
	line       int
}

// thread holds a run's chain of calls.
type thread struct {
	state        *State
	call         *Call // the innermost
	calls        int
	goCalls      int     // number of calls that Go code waits for
	stack        []Value // arguments of the next calls
	chargedStack int     // the capacity of stack that enter has charged
	results      []Value // results of the last call; valid until the next call
	freeCalls    []*Call // for reuse
}

// maxCalls and maxGoCalls are limits of C Lua. maxDepth is a limit of this package, because nested
// expressions use Go's stack.
const (
	maxCalls   = 20000
	maxGoCalls = 200
	maxDepth   = 300000
)

// enter begins a call that needs depth levels of Go's stack. It charges for the call, and for work
// in it.
func (t *thread) enter(closure *Closure, at *site, depth, work int) *Call {
	m := &t.state.meter
	m.ChargeWork(meter.Step + work)
	if t.calls >= maxCalls || !m.AllowsDepth(depth) {
		t.raiseOverflow("stack overflow")
	}
	m.GrowForDepth(depth)
	if growth := cap(t.stack) - t.chargedStack; growth > 0 {
		t.chargedStack += growth
		m.Charge(growth * arraySlotSize)
	}
	t.calls++
	m.AddDepth(depth)
	c := t.reuseCall()
	c.thread, c.caller, c.closure, c.site = t, t.call, closure, at
	t.call = c
	return c
}

// raiseOverflow raises a stack overflow with the given text.
func (t *thread) raiseOverflow(text string) { t.raise(t.call.position() + text) }

// leave ends the innermost call.
func (t *thread) leave(c *Call, depth int) {
	t.calls--
	t.state.meter.AddDepth(-depth)
	t.call = c.caller
	t.freeCalls = append(t.freeCalls, c)
}

// reuseCall returns an ended Call for reuse, or a new Call.
func (t *thread) reuseCall() *Call {
	n := len(t.freeCalls)
	if n == 0 {
		return &Call{}
	}
	c := t.freeCalls[n-1]
	t.freeCalls = t.freeCalls[:n-1]
	*c = Call{slots: c.slots[:0], varargs: c.varargs[:0]}
	return c
}

// invoke calls any value. The results are valid until the next call. at is nil if Go code calls.
func (t *thread) invoke(f Value, args []Value, at *site) []Value {
	switch fn := f.(type) {
	case *Closure:
		return t.runClosure(fn, args, at)
	case *Builtin:
		return t.runBuiltin(fn, args, at)
	}
	handler := t.metamethod(f, "__call")
	if !isFunction(handler) {
		t.raiseNotCallable(f, at)
	}
	return t.invoke(handler, append([]Value{f}, args...), at)
}

func isFunction(v Value) bool {
	switch v.(type) {
	case *Closure, *Builtin:
		return true
	}
	return false
}

func (t *thread) raiseNotCallable(f Value, at *site) {
	if at == nil || at.name == forGenerator {
		at = withoutName(at)
	}
	t.call.raiseTypeError(at, f, "call")
}

// builtinDepth is the cost of a call of a Go function, in levels of Go calls.
const builtinDepth = 12

func (t *thread) runBuiltin(b *Builtin, args []Value, at *site) []Value {
	work := 0
	if !b.metered {
		work = bytesOf(args)
	}
	c := t.enter(nil, at, builtinDepth, work)
	savedSlots := c.slots
	c.slots = args
	results := b.run(c)
	c.slots = savedSlots
	t.leave(c, builtinDepth)
	return results
}

// argumentWork is the cost of passing an argument, in bytes processed.
const argumentWork = 8

// bytesOf returns the number of bytes that a Go function with these arguments may process.
func bytesOf(args []Value) int {
	n := len(args) * argumentWork
	for _, v := range args {
		if s, ok := v.(string); ok {
			n += len(s)
		}
	}
	return n
}

func (t *thread) runClosure(f *Closure, args []Value, at *site) []Value {
	depth := f.proto.depth
	c := t.enter(f, at, depth, f.proto.work+len(args)*argumentWork)
	f.proto.prepare(c, args)
	for c.closure.proto.run(c) == flowTailCall {
		callee, calleeSite, results := c.tailCallee, c.tailSite, c.result
		fn, ok := callee.(*Closure)
		if !ok { // a Go function does not replace its caller
			base := len(t.stack)
			t.stack = append(t.stack, results...)
			c.result = t.invoke(callee, t.stack[base:], calleeSite)
			t.stack = t.stack[:base]
			break
		}
		t.state.meter.ChargeWork(meter.Step + fn.proto.work + len(results)*argumentWork)
		growth := fn.proto.depth - depth
		t.state.meter.AddDepth(growth)
		depth = fn.proto.depth
		c.closure, c.tailCalls = fn, c.tailCalls+1
		fn.proto.prepare(c, results)
	}
	results := c.result
	t.leave(c, depth)
	return results
}

// callFromGo calls a value from Go code. Such calls nest at most about maxGoCalls deep.
func (t *thread) callFromGo(f Value, args ...Value) []Value {
	t.enterGo()
	results := t.invoke(f, args, nil)
	t.goCalls--
	return results
}

// enterGo counts a call that Go code waits for.
func (t *thread) enterGo() {
	if t.goCalls >= maxGoCalls-2 {
		t.raiseOverflow("C stack overflow")
	}
	t.goCalls++
}

// firstValue returns the first value of a call's results, or nil.
func firstValue(values []Value) Value {
	if len(values) == 0 {
		return nil
	}
	return values[0]
}

// checkpoint is the state of a thread that a protected call restores after an error.
type checkpoint struct {
	call                         *Call
	calls, depth, goCalls, stack int
}

func (t *thread) saveCheckpoint() checkpoint {
	return checkpoint{t.call, t.calls, t.state.meter.Depth(), t.goCalls, len(t.stack)}
}

func (t *thread) restore(p checkpoint) {
	m := &t.state.meter
	m.AddDepth(p.depth - m.Depth())
	t.call, t.calls, t.goCalls, t.stack = p.call, p.calls, p.goCalls, t.stack[:p.stack]
}

// protectedCall calls a value, and returns the error that the call raises.
func (t *thread) protectedCall(f Value, args []Value) (results []Value, luaErr *Error) {
	start := t.saveCheckpoint()
	defer func() {
		if problem := recover(); problem != nil {
			luaErr, _ = problem.(*Error)
			if luaErr == nil {
				panic(problem)
			}
			t.restore(start)
		}
	}()
	return t.callFromGo(f, args...), nil
}
