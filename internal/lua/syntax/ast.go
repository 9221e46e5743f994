package syntax

// The syntax tree of a chunk, with resolved variables. Line is the line that C Lua names in errors.

// Expression is a pointer to one of the types that end in Expr.
type Expression any

type (
	// ConstantExpr is nil, a bool, a float64 or a string.
	ConstantExpr struct{ Value any }
	// DotsExpr is "...".
	DotsExpr struct{}
	// LocalExpr is a local variable of the current function.
	LocalExpr struct{ Local *Local }
	// CapturedExpr is a local variable of an outer function: the captured variable number Index.
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
		Method   string // the method's name in object:method()
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
	// ParenExpr is (expression), which has at most one value.
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
	// LoopStmt is a while loop, or a repeat loop if IsRepeat is true.
	LoopStmt struct {
		Condition Expression
		Body      []Statement
		IsRepeat  bool
	}
	// IfStmt is if … end. With an else, there is one more body than conditions.
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
		Locals       []*Local
		Values       []Expression
		IteratorSlot int // first of three slots: the iterator, the state and the control variable
		Body         []Statement
		Line         int
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
	Captured bool // an inner function uses it
}

// Function is a parsed function.
type Function struct {
	line     int
	Params   []*Local
	IsVararg bool
	ArgTable *Local // the table arg of a function with ... that does not use ...
	Body     []Statement
	Captures []Capture
	Slots    int
	Source   string
	// TokenCount is the number of tokens of the whole source, and Literals its string literals in
	// order. They are set only for the main function.
	TokenCount int
	Literals   []string
}

// Capture is the source from which a new closure gets a captured variable.
type Capture struct {
	// FromLocal is set for a local variable of the outer function. It is not set for a variable
	// that the outer function captured itself.
	FromLocal bool
	// Index is the slot of the local variable, or the number of the captured variable.
	Index int
}
