package lua

import (
	"fmt"
	"strings"
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

// parse reads a source. The error is a *CompileError.
func parse(source, name string) (main *function, err error) {
	defer catchMistake(&err)
	p := &parser{lexer: newLexer(source, name), lastLine: 1}
	s := p.openFunction(0)
	s.isVararg = true
	p.next()
	s.body = p.chunk()
	p.want(tkEOF)
	return p.closeFunction(), nil
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
func (p *parser) peekKind() kind {
	t := p.scan()
	p.ahead = &t
	return t.kind
}

func (p *parser) accept(k kind) bool {
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
		return cString(p.token.text)
	case tkString:
		if quote := p.source[p.tokenStart : p.tokenStart+1]; quote != "[" {
			return cString(quote + p.token.text + quote)
		}
		return cString(p.source[p.tokenStart:p.at])
	case 0:
		return "" // C Lua takes it for no token at all
	}
	return p.token.kind.String()
}

// cString is a string as C's printf shows it: up to a zero byte.
func cString(s string) string {
	head, _, _ := strings.Cut(s, "\x00")
	return head
}

func (p *parser) want(k kind) {
	if p.token.kind != k {
		p.complain("'" + k.String() + "' expected")
	}
}

func (p *parser) expect(k kind) {
	p.want(k)
	p.next()
}

// close expects the end of what began with open on a line.
func (p *parser) close(k, open kind, line int) {
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
func (p *parser) chunk() (statements []statement) {
	defer p.enter()()
	for last := false; !last && !p.blockEnds(); {
		var s statement
		s, last = p.statement()
		statements = append(statements, s)
		p.accept(';')
	}
	return statements
}

func (p *parser) body() (statements []statement) {
	p.block(func() { statements = p.chunk() })
	return statements
}

// statement parses one; last tells that none may follow in its block.
func (p *parser) statement() (s statement, last bool) {
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
		return &doStmt{body}, false
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
		return &breakStmt{}, true
	}
	return p.expressionStatement(), false
}

func (p *parser) ifStatement(line int) statement {
	s := &ifStmt{}
	for first := true; first || p.token.kind == tkElseif; first = false {
		p.next()
		s.conditions = append(s.conditions, p.expression())
		p.expect(tkThen)
		s.bodies = append(s.bodies, p.body())
	}
	if p.accept(tkElse) {
		s.bodies = append(s.bodies, p.body())
	}
	p.close(tkEnd, tkIf, line)
	return s
}

func (p *parser) whileStatement(line int) statement {
	p.next()
	s := &loopStmt{condition: p.expression()}
	p.expect(tkDo)
	s.body = p.loopBody()
	p.close(tkEnd, tkWhile, line)
	return s
}

func (p *parser) loopBody() []statement {
	p.scope.loops++
	defer func() { p.scope.loops-- }()
	return p.body()
}

func (p *parser) repeatStatement(line int) statement {
	p.next()
	s := &loopStmt{repeat: true}
	p.scope.loops++
	p.block(func() {
		s.body = p.chunk()
		p.close(tkUntil, tkRepeat, line)
		s.condition = p.expression()
	})
	p.scope.loops--
	return s
}

func (p *parser) forStatement(line int) (s statement) {
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

func (p *parser) numericFor(name string, line int) statement {
	p.next()
	s := &forStmt{local: p.newLocal(name, 3), step: &constantExpr{1.0}}
	s.start = p.expression()
	p.expect(',')
	s.limit = p.expression()
	if p.accept(',') {
		s.step = p.expression()
	}
	p.expect(tkDo)
	s.line = p.lastLine
	p.scope.show(s.local)
	s.body = p.loopBody()
	p.close(tkEnd, tkFor, line)
	return s
}

func (p *parser) genericFor(name string, line int) statement {
	s := &forInStmt{line: line}
	s.locals = append(s.locals, p.newLocal(name, 3))
	for p.accept(',') {
		s.locals = append(s.locals, p.newLocal(p.nameText(), 3+len(s.locals)))
	}
	p.expect(tkIn)
	s.values = p.expressions()
	p.expect(tkDo)
	s.hidden = p.scope.reserve(3)
	p.scope.show(s.locals...)
	s.body = p.loopBody()
	p.close(tkEnd, tkFor, line)
	return s
}

func (p *parser) functionStatement(line int) statement {
	p.next()
	nameLine := p.line
	target := p.variable(p.nameText(), nameLine)
	method := false
	for !method && (p.token.kind == '.' || p.token.kind == ':') {
		method = p.token.kind == ':'
		p.next()
		target = &indexExpr{target, &constantExpr{p.nameText()}, p.lastLine}
	}
	f := p.functionBody(method, line)
	return &assignStmt{[]expression{target}, []expression{&functionExpr{f}}, line}
}

func (p *parser) localFunction() statement {
	l := p.newLocal(p.nameText(), 0)
	p.scope.show(l) // before the body, which may call it
	return &functionStmt{l, p.functionBody(false, p.line)}
}

func (p *parser) localStatement() statement {
	s := &localStmt{}
	for first := true; first || p.accept(','); first = false {
		s.locals = append(s.locals, p.newLocal(p.nameText(), len(s.locals)))
	}
	if p.accept('=') {
		s.values = p.expressions()
	}
	p.scope.show(s.locals...)
	return s
}

func (p *parser) returnStatement() statement {
	p.next()
	s := &returnStmt{}
	if !p.blockEnds() && p.token.kind != ';' {
		s.values = p.expressions()
	}
	return s
}

// expressionStatement is a call or an assignment.
func (p *parser) expressionStatement() statement {
	e := p.suffixed()
	if call, ok := e.(*callExpr); ok {
		return &callStmt{call}
	}
	targets := []expression{e}
	for p.token.kind != '=' {
		if !isAssignable(targets[len(targets)-1]) {
			p.complain("syntax error")
		}
		if !p.accept(',') {
			p.want('=')
		}
		targets = append(targets, p.suffixed())
		p.limit(len(targets)-1, maxLevels-p.levels, "variables in assignment")
	}
	if !isAssignable(targets[len(targets)-1]) {
		p.complain("syntax error")
	}
	p.next()
	return &assignStmt{targets, p.expressions(), p.lastLine}
}

func isAssignable(e expression) bool {
	switch e.(type) {
	case *localExpr, *capturedExpr, *globalExpr, *indexExpr:
		return true
	}
	return false
}
