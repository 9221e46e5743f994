package lua

// The tree of a chunk, with its variables resolved. line is the last line of an expression, which is where C Lua sees its errors.

type expression interface{}

type (
	constantExpr struct{ value Value }
	dotsExpr     struct{}
	localExpr    struct{ local *local }
	capturedExpr struct {
		index int
		name  string
	}
	globalExpr struct {
		name string
		line int
	}
	indexExpr struct {
		object, key expression
		line        int
	}
	callExpr struct {
		function expression
		method   string // of object:method()
		args     []expression
		line     int
		selfLine int
	}
	functionExpr struct{ function *function }
	tableExpr    struct {
		items []tableItem
		line  int
	}
	unaryExpr struct {
		operator kind
		operand  expression
		line     int
	}
	binaryExpr struct {
		operator    kind
		left, right expression
		line        int
	}
	// parenExpr cuts many values to one.
	parenExpr struct{ inner expression }
)

// tableItem is key = value, or value alone.
type tableItem struct{ key, value expression }

// isMulti tells whether an expression can have any number of values.
func isMulti(e expression) bool {
	switch e.(type) {
	case *callExpr, *dotsExpr:
		return true
	}
	return false
}

type statement interface{}

type (
	localStmt struct {
		locals []*local
		values []expression
	}
	assignStmt struct {
		targets []expression
		values  []expression
		line    int
	}
	callStmt struct{ call *callExpr }
	doStmt   struct{ body []statement }
	loopStmt struct { // while, and repeat if the condition comes last
		condition expression
		body      []statement
		repeat    bool
	}
	ifStmt struct {
		conditions []expression
		bodies     [][]statement // one more if there is an else
	}
	forStmt struct {
		local              *local
		start, limit, step expression
		body               []statement
		line               int
	}
	forInStmt struct {
		locals []*local
		values []expression
		hidden int // the slot of the iterator, the state and the control variable
		body   []statement
		line   int
	}
	functionStmt struct { // local function
		local    *local
		function *function
	}
	returnStmt struct{ values []expression }
	breakStmt  struct{}
)

// local is a local variable.
type local struct {
	name     string
	slot     int
	captured bool // by a function within
}

// function is a function's body with what it needs to run.
type function struct {
	line     int
	params   []*local
	isVararg bool
	needsArg *local // the table arg of a function with ... that does not use ...
	body     []statement
	captures []capture
	slots    int
	source   string
}

// capture is where a function finds a variable of a function around it, when it is made.
type capture struct {
	fromLocal bool
	index     int // of the slot, else among what the function around captured
	name      string
}
