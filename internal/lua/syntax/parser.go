package syntax

import (
	"fmt"

	"redlock-proxy/internal/lua/clib"
	"redlock-proxy/internal/lua/meter"
)

// parser makes the tree of a chunk, by the grammar and with the messages of C Lua.
type parser struct {
	*lexer
	scope    *scope
	token    token
	ahead    *token
	lastLine int // of the token before
	levels   int
}

// Parse reads a source, and charges a meter for it, which may be nil; name is "@" and the name that
// errors show. The error is a *CompileError.
func Parse(m *meter.Meter, source, name string) (main *Function, err error) {
	return parseAll(newLexer(m, source, name))
}

// ParsePieces reads a source of which more gives the next piece, empty at its end. The error is a
// *CompileError.
func ParsePieces(m *meter.Meter, more func() string, name string) (main *Function, err error) {
	l := newLexer(m, "", name)
	l.more = more
	return parseAll(l)
}

func parseAll(l *lexer) (main *Function, err error) {
	defer catchMistake(&err)
	p := &parser{lexer: l, lastLine: 1}
	s := p.openFunction(0)
	s.IsVararg = true
	p.next()
	s.Body = p.chunk()
	p.want(tkEOF)
	main = p.closeFunction()
	main.Tokens, main.Literals = l.tokens, l.literals
	return main, nil
}

func (p *parser) next() {
	p.lastLine = p.line
	if p.ahead != nil {
		p.token, p.ahead = *p.ahead, nil
		return
	}
	p.token = p.scan()
}

// peekKind is the kind of the token after this one.
func (p *parser) peekKind() Kind {
	t := p.scan()
	p.ahead = &t
	return t.kind
}

func (p *parser) accept(k Kind) bool {
	if p.token.kind != k {
		return false
	}
	p.next()
	return true
}

// complain ends the compilation at the present token.
func (p *parser) complain(text string) { p.mistake(text, p.shown()) }

// shown is the present token as it was written.
func (p *parser) shown() string {
	switch p.token.kind {
	case tkName, tkNumber:
		return clib.UpToZero(p.token.text)
	case tkString:
		if quote := p.source[p.tokenStart : p.tokenStart+1]; quote != "[" {
			return clib.UpToZero(quote + p.token.text + quote)
		}
		return clib.UpToZero(p.source[p.tokenStart:p.at])
	case 0:
		return "" // C Lua takes it for no token at all
	}
	return p.token.kind.String()
}

func (p *parser) want(k Kind) {
	if p.token.kind != k {
		p.complain("'" + k.String() + "' expected")
	}
}

func (p *parser) expect(k Kind) {
	p.want(k)
	p.next()
}

// close expects the end of what began with open on a line.
func (p *parser) close(k, open Kind, line int) {
	if p.token.kind == k {
		p.next()
		return
	}
	if line == p.line {
		p.want(k)
	}
	p.complain(fmt.Sprintf("'%s' expected (to close '%s' at line %d)", k, open, line))
}

func (p *parser) nameText() string {
	p.want(tkName)
	text := p.token.text
	p.next()
	return text
}

// enter counts a level of nesting; the result leaves it.
func (p *parser) enter() func() {
	if p.levels++; p.levels > maxLevels {
		p.mistake("chunk has too many syntax levels", "")
	}
	return func() { p.levels-- }
}

func (p *parser) blockEnds() bool {
	switch p.token.kind {
	case tkElse, tkElseif, tkEnd, tkEOF, tkUntil:
		return true
	}
	return false
}

// chunk is a list of statements, in the block that is open.
func (p *parser) chunk() (statements []Statement) {
	defer p.enter()()
	for last := false; !last && !p.blockEnds(); {
		var s Statement
		s, last = p.statement()
		statements = append(statements, s)
		p.accept(';')
	}
	return statements
}

func (p *parser) body() (statements []Statement) {
	p.block(func() { statements = p.chunk() })
	return statements
}

// statement parses one; last tells that none may follow in its block.
func (p *parser) statement() (s Statement, last bool) {
	line := p.line
	switch p.token.kind {
	case tkIf:
		return p.ifStatement(line), false
	case tkWhile:
		return p.whileStatement(line), false
	case tkDo:
		p.next()
		body := p.body()
		p.close(tkEnd, tkDo, line)
		return &DoStmt{body}, false
	case tkFor:
		return p.forStatement(line), false
	case tkRepeat:
		return p.repeatStatement(line), false
	case tkFunction:
		return p.functionStatement(line), false
	case tkLocal:
		p.next()
		if p.accept(tkFunction) {
			return p.localFunction(), false
		}
		return p.localStatement(), false
	case tkReturn:
		return p.returnStatement(), true
	case tkBreak:
		p.next()
		if p.scope.loops == 0 {
			p.complain("no loop to break")
		}
		return &BreakStmt{}, true
	}
	return p.expressionStatement(), false
}

func (p *parser) ifStatement(line int) Statement {
	s := &IfStmt{}
	for first := true; first || p.token.kind == tkElseif; first = false {
		p.next()
		s.Conditions = append(s.Conditions, p.expression())
		p.expect(tkThen)
		s.Bodies = append(s.Bodies, p.body())
	}
	if p.accept(tkElse) {
		s.Bodies = append(s.Bodies, p.body())
	}
	p.close(tkEnd, tkIf, line)
	return s
}

func (p *parser) whileStatement(line int) Statement {
	p.next()
	s := &LoopStmt{Condition: p.expression()}
	p.expect(tkDo)
	s.Body = p.loopBody()
	p.close(tkEnd, tkWhile, line)
	return s
}

func (p *parser) loopBody() []Statement {
	p.scope.loops++
	defer func() { p.scope.loops-- }()
	return p.body()
}

func (p *parser) repeatStatement(line int) Statement {
	p.next()
	s := &LoopStmt{Repeat: true}
	p.scope.loops++
	p.block(func() {
		s.Body = p.chunk()
		p.close(tkUntil, tkRepeat, line)
		s.Condition = p.expression()
	})
	p.scope.loops--
	return s
}

func (p *parser) forStatement(line int) (s Statement) {
	p.next()
	p.block(func() {
		name := p.nameText()
		switch p.token.kind {
		case '=':
			s = p.numericFor(name, line)
		case ',', tkIn:
			s = p.genericFor(name, line)
		default:
			p.complain("'=' or 'in' expected")
		}
	})
	return s
}

func (p *parser) numericFor(name string, line int) Statement {
	p.next()
	s := &ForStmt{Local: p.newLocal(name, 3), Step: &ConstantExpr{1.0}}
	s.Start = p.expression()
	p.expect(',')
	s.Limit = p.expression()
	if p.accept(',') {
		s.Step = p.expression()
	}
	p.expect(tkDo)
	s.Line = p.lastLine
	p.scope.show(s.Local)
	s.Body = p.loopBody()
	p.close(tkEnd, tkFor, line)
	return s
}

func (p *parser) genericFor(name string, line int) Statement {
	s := &ForInStmt{}
	s.Locals = append(s.Locals, p.newLocal(name, 3))
	for p.accept(',') {
		s.Locals = append(s.Locals, p.newLocal(p.nameText(), 3+len(s.Locals)))
	}
	p.expect(tkIn)
	s.Line = p.line
	s.Values = p.expressions()
	p.expect(tkDo)
	s.Hidden = p.scope.reserve(3)
	p.scope.show(s.Locals...)
	s.Body = p.loopBody()
	p.close(tkEnd, tkFor, line)
	return s
}

func (p *parser) functionStatement(line int) Statement {
	p.next()
	nameLine := p.line
	target := p.variable(p.nameText(), nameLine)
	method := false
	for !method && (p.token.kind == '.' || p.token.kind == ':') {
		method = p.token.kind == ':'
		p.next()
		target = &IndexExpr{target, &ConstantExpr{p.nameText()}, p.lastLine}
	}
	f := p.functionBody(method, line)
	return &AssignStmt{[]Expression{target}, []Expression{&FunctionExpr{f}}, line}
}

func (p *parser) localFunction() Statement {
	l := p.newLocal(p.nameText(), 0)
	p.scope.show(l) // before the body, which may call it
	return &FunctionStmt{l, p.functionBody(false, p.line)}
}

func (p *parser) localStatement() Statement {
	s := &LocalStmt{}
	for first := true; first || p.accept(','); first = false {
		s.Locals = append(s.Locals, p.newLocal(p.nameText(), len(s.Locals)))
	}
	if p.accept('=') {
		s.Values = p.expressions()
	}
	p.scope.show(s.Locals...)
	return s
}

func (p *parser) returnStatement() Statement {
	p.next()
	s := &ReturnStmt{}
	if !p.blockEnds() && p.token.kind != ';' {
		s.Values = p.expressions()
	}
	return s
}

// expressionStatement is a call or an assignment.
func (p *parser) expressionStatement() Statement {
	e := p.suffixed()
	if call, ok := e.(*CallExpr); ok {
		return &CallStmt{call}
	}
	targets := []Expression{e}
	for p.token.kind != '=' {
		if !IsAssignable(targets[len(targets)-1]) {
			p.complain("syntax error")
		}
		if !p.accept(',') {
			p.want('=')
		}
		targets = append(targets, p.suffixed())
		p.limit(len(targets)-1, maxLevels-p.levels, "variables in assignment")
	}
	if !IsAssignable(targets[len(targets)-1]) {
		p.complain("syntax error")
	}
	p.next()
	return &AssignStmt{targets, p.expressions(), p.lastLine}
}

// IsAssignable reports whether an expression can be given a value: a variable, or an element of a
// table.
func IsAssignable(e Expression) bool {
	switch e.(type) {
	case *LocalExpr, *CapturedExpr, *GlobalExpr, *IndexExpr:
		return true
	}
	return false
}
