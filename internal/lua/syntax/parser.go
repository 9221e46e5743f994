package syntax

import (
	"fmt"

	"redlock-proxy/internal/lua/clib"
	"redlock-proxy/internal/lua/meter"
)

// parser builds the syntax tree of a chunk, with the grammar and the messages of C Lua.
type parser struct {
	*lexer
	scope     *scope
	token     token
	lookahead *token
	lastLine  int // line of the previous token
	levels    int
	// links is the number of chain links in the deepest part of the current expression or block so
	// far. In a(b.c.d).e it is four: c and d, the call of a, and e.
	links int
}

// Parse parses a source, and charges the meter for it. name is "@" and the name that errors show.
// The error is a *CompileError.
func Parse(m *meter.Meter, source, name string) (main *Function, err error) {
	return parseAll(newLexer(m, source, name))
}

// ParsePieces parses a source that comes in pieces: nextPiece returns the next piece, or "" at the
// end. The error is a *CompileError.
func ParsePieces(m *meter.Meter, nextPiece func() string, name string) (main *Function, err error) {
	l := newLexer(m, "", name)
	l.nextPiece = nextPiece
	return parseAll(l)
}

func parseAll(l *lexer) (main *Function, err error) {
	defer recoverError(&err)
	p := &parser{lexer: l, lastLine: 1}
	s := p.openFunction(0)
	s.IsVararg = true
	p.next()
	s.Body = p.chunk()
	p.require(tkEOF)
	main = p.closeFunction()
	main.TokenCount, main.Literals = l.tokenCount, l.literals
	return main, nil
}

func (p *parser) next() {
	p.lastLine = p.line
	if p.lookahead != nil {
		p.token, p.lookahead = *p.lookahead, nil
		return
	}
	p.token = p.scan()
}

// peekKind returns the kind of the token after the current one.
func (p *parser) peekKind() Kind {
	t := p.scan()
	p.lookahead = &t
	return t.kind
}

func (p *parser) accept(k Kind) bool {
	if p.token.kind != k {
		return false
	}
	p.next()
	return true
}

// failAtToken ends the compilation with an error at the current token.
func (p *parser) failAtToken(text string) { p.fail(text, p.tokenText()) }

// tokenText returns the source text of the current token, for messages.
func (p *parser) tokenText() string {
	switch p.token.kind {
	case tkName, tkNumber:
		return clib.CutAtZero(p.token.text)
	case tkString:
		if quote := p.source[p.tokenStart : p.tokenStart+1]; quote != "[" {
			return clib.CutAtZero(quote + p.token.text + quote)
		}
		return clib.CutAtZero(p.source[p.tokenStart:p.pos])
	case 0:
		return "" // for C Lua, the zero byte is no token
	}
	return p.token.kind.String()
}

func (p *parser) require(k Kind) {
	if p.token.kind != k {
		p.failAtToken("'" + k.String() + "' expected")
	}
}

func (p *parser) expect(k Kind) {
	p.require(k)
	p.next()
}

// expectClosing expects the token that ends a block. The block began with open on the given line.
func (p *parser) expectClosing(k, open Kind, line int) {
	if p.token.kind == k {
		p.next()
		return
	}
	if line == p.line {
		p.require(k)
	}
	p.failAtToken(fmt.Sprintf("'%s' expected (to close '%s' at line %d)", k, open, line))
}

func (p *parser) nameText() string {
	p.require(tkName)
	text := p.token.text
	p.next()
	return text
}

// enter counts a level of nesting. The returned function ends the level.
func (p *parser) enter() func() {
	if p.levels++; p.levels > maxLevels {
		p.fail("chunk has too many syntax levels", "")
	}
	endLinks := p.beginLinks()
	return func() {
		endLinks()
		p.levels--
	}
}

// beginLinks begins an expression or a block, which counts its links from zero. At its end, which the
// returned function reports, it is a part of what is around it.
func (p *parser) beginLinks() func() {
	outer := p.links
	p.links = 0
	return func() { p.links = max(p.links, outer) }
}

// addLink adds a link to a chain. Everything that the chain has so far nests in the new link.
func (p *parser) addLink() {
	if p.links++; p.links > maxLinks {
		p.fail("chunk has too many syntax levels", "")
	}
}

func (p *parser) atBlockEnd() bool {
	switch p.token.kind {
	case tkElse, tkElseif, tkEnd, tkEOF, tkUntil:
		return true
	}
	return false
}

// chunk parses the statements of the current block.
func (p *parser) chunk() (statements []Statement) {
	defer p.enter()()
	for last := false; !last && !p.atBlockEnd(); {
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

// statement parses a statement. last reports whether it must be the last statement of its block.
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
		p.expectClosing(tkEnd, tkDo, line)
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
			p.failAtToken("no loop to break")
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
	p.expectClosing(tkEnd, tkIf, line)
	return s
}

func (p *parser) whileStatement(line int) Statement {
	p.next()
	s := &LoopStmt{Condition: p.expression()}
	p.expect(tkDo)
	s.Body = p.loopBody()
	p.expectClosing(tkEnd, tkWhile, line)
	return s
}

func (p *parser) loopBody() []Statement {
	p.scope.loops++
	defer func() { p.scope.loops-- }()
	return p.body()
}

func (p *parser) repeatStatement(line int) Statement {
	p.next()
	s := &LoopStmt{IsRepeat: true}
	p.scope.loops++
	p.block(func() {
		s.Body = p.chunk()
		p.expectClosing(tkUntil, tkRepeat, line)
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
			p.failAtToken("'=' or 'in' expected")
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
	p.scope.declare(s.Local)
	s.Body = p.loopBody()
	p.expectClosing(tkEnd, tkFor, line)
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
	s.IteratorSlot = p.scope.reserve(3)
	p.scope.declare(s.Locals...)
	s.Body = p.loopBody()
	p.expectClosing(tkEnd, tkFor, line)
	return s
}

func (p *parser) functionStatement(line int) Statement {
	p.next()
	nameLine := p.line
	target := p.variable(p.nameText(), nameLine)
	isMethod := false
	defer p.beginLinks()()
	for !isMethod && (p.token.kind == '.' || p.token.kind == ':') {
		isMethod = p.token.kind == ':'
		p.next()
		p.addLink()
		target = &IndexExpr{target, &ConstantExpr{p.nameText()}, p.lastLine}
	}
	f := p.functionBody(isMethod, line)
	return &AssignStmt{[]Expression{target}, []Expression{&FunctionExpr{f}}, line}
}

func (p *parser) localFunction() Statement {
	l := p.newLocal(p.nameText(), 0)
	p.scope.declare(l) // before the body, which may call it
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
	p.scope.declare(s.Locals...)
	return s
}

func (p *parser) returnStatement() Statement {
	p.next()
	s := &ReturnStmt{}
	if !p.atBlockEnd() && p.token.kind != ';' {
		s.Values = p.expressions()
	}
	return s
}

// expressionStatement parses a call or an assignment.
func (p *parser) expressionStatement() Statement {
	e := p.suffixedExpr()
	if call, ok := e.(*CallExpr); ok {
		return &CallStmt{call}
	}
	targets := []Expression{e}
	for p.token.kind != '=' {
		if !IsAssignable(targets[len(targets)-1]) {
			p.failAtToken("syntax error")
		}
		if !p.accept(',') {
			p.require('=')
		}
		targets = append(targets, p.suffixedExpr())
		p.checkLimit(len(targets)-1, maxLevels-p.levels, "variables in assignment")
	}
	if !IsAssignable(targets[len(targets)-1]) {
		p.failAtToken("syntax error")
	}
	p.next()
	return &AssignStmt{targets, p.expressions(), p.lastLine}
}

// IsAssignable reports whether an expression can be assigned to: a variable, or an element of a
// table.
func IsAssignable(e Expression) bool {
	switch e.(type) {
	case *LocalExpr, *CapturedExpr, *GlobalExpr, *IndexExpr:
		return true
	}
	return false
}
