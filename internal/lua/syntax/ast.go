package syntax

// The tree of a chunk, with its variables resolved. Line is the last line of an expression, which
// is where C Lua sees its errors.

// Expression is a pointer to one of the types that end in Expr.
type Expression any

type (
	// ConstantExpr is nil, a bool, a float64 or a string.
	ConstantExpr struct{ Value any }
	// DotsExpr is "...".
	DotsExpr struct{}
	// LocalExpr is a variable of the function itself.
	LocalExpr struct{ Local *Local }
	// CapturedExpr is a variable of a function around it: what it captured as number Index.
	CapturedExpr struct {
		Index int
		Name  string
	}
	// GlobalExpr is a global variable.
	GlobalExpr struct {
		Name string
		Line int
	}
	// IndexExpr is object[key], or object.key.
	IndexExpr struct {
		Object, Key Expression
		Line        int
	}
	// CallExpr is a call of a function, or of a method.
	CallExpr struct {
		Function Expression
		Method   string // of object:method()
		Args     []Expression
		Line     int
		SelfLine int
	}
	// FunctionExpr is function () … end.
	FunctionExpr struct{ Function *Function }
	// TableExpr is {…}.
	TableExpr struct {
		Items []TableItem
		Line  int
	}
	// UnaryExpr is an operator before its operand: '-', '#' or Not.
	UnaryExpr struct {
		Operator Kind
		Operand  Expression
		Line     int
	}
	// BinaryExpr is an operator between its operands.
	BinaryExpr struct {
		Operator    Kind
		Left, Right Expression
		Line        int
	}
	// ParenExpr cuts many values to one.
	ParenExpr struct{ Inner Expression }
)

// TableItem is key = value, or value alone.
type TableItem struct{ Key, Value Expression }

// IsMulti reports whether an expression can have any number of values.
func IsMulti(e Expression) bool {
	switch e.(type) {
	case *CallExpr, *DotsExpr:
		return true
	}
	return false
}

// Statement is a pointer to one of the types that end in Stmt.
type Statement any

type (
	// LocalStmt is local a, b = 1, 2.
	LocalStmt struct {
		Locals []*Local
		Values []Expression
	}
	// AssignStmt is a, b[c] = 1, 2.
	AssignStmt struct {
		Targets []Expression
		Values  []Expression
		Line    int
	}
	// CallStmt is a call whose results are not used.
	CallStmt struct{ Call *CallExpr }
	// DoStmt is do … end.
	DoStmt struct{ Body []Statement }
	// LoopStmt is while, and repeat if the condition comes last.
	LoopStmt struct {
		Condition Expression
		Body      []Statement
		Repeat    bool
	}
	// IfStmt has one body more than conditions if there is an else.
	IfStmt struct {
		Conditions []Expression
		Bodies     [][]Statement
	}
	// ForStmt is for i = start, limit, step; Step is never nil.
	ForStmt struct {
		Local              *Local
		Start, Limit, Step Expression
		Body               []Statement
		Line               int
	}
	// ForInStmt is for a, b in values.
	ForInStmt struct {
		Locals []*Local
		Values []Expression
		Hidden int // the slot of the iterator, the state and the control variable
		Body   []Statement
		Line   int
	}
	// FunctionStmt is local function f () … end.
	FunctionStmt struct {
		Local    *Local
		Function *Function
	}
	// ReturnStmt is return a, b.
	ReturnStmt struct{ Values []Expression }
	// BreakStmt is break.
	BreakStmt struct{}
)

// Local is a local variable.
type Local struct {
	Name     string
	Slot     int
	Captured bool // by a function within
}

// Function is a function's body with what it needs to run.
type Function struct {
	line     int
	Params   []*Local
	IsVararg bool
	NeedsArg *Local // the table arg of a function with ... that does not use ...
	Body     []Statement
	Captures []Capture
	Slots    int
	Source   string
	// Of the whole source, where this is the main program: how many tokens there are, and the
	// string literals in their order.
	Tokens   int
	Literals []string
}

// Capture is where a function finds a variable of a function around it, when it is made.
type Capture struct {
	FromLocal bool
	Index     int // of the slot, else among what the function around captured
}
