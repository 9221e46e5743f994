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
	s.meter.charge(coroutineSize)
	co := &Coroutine{body: body, status: "suspended", address: s.meter.address()}
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
	s.meter.depth -= co.thread.depth
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
