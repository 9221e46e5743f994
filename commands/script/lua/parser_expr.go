package lua

func (p *parser) expressions() []expression {
	list := []expression{p.expression()}
	for p.accept(',') {
		list = append(list, p.expression())
	}
	return list
}

// precedence is how tightly an operator binds on its left and on its right; 0 for none.
func precedence(k kind) (left, right int) {
	switch k {
	case '+', '-':
		return 6, 6
	case '*', '/', '%':
		return 7, 7
	case '^':
		return 10, 9
	case tkConcat:
		return 5, 4
	case tkEq, tkNe, '<', tkLe, '>', tkGe:
		return 3, 3
	case tkAnd:
		return 2, 2
	case tkOr:
		return 1, 1
	}
	return 0, 0
}

const unaryPrecedence = 8

func (p *parser) expression() expression { return p.operators(0) }

// operators parses operators that bind tighter than a limit.
func (p *parser) operators(limit int) expression {
	defer p.enter()()
	var e expression
	switch k := p.token.kind; k {
	case tkNot, '-', '#':
		p.next()
		operand := p.operators(unaryPrecedence)
		e = foldUnary(&unaryExpr{k, operand, p.lastLine})
	default:
		e = p.simple()
	}
	for chain := 0; ; chain++ {
		operator := p.token.kind
		left, right := precedence(operator)
		if left <= limit {
			return e
		}
		p.checkChain(chain)
		p.next()
		operand := p.operators(right)
		e = foldBinary(&binaryExpr{operator, e, operand, p.lastLine})
	}
}

func (p *parser) checkChain(n int) {
	if n > maxChain {
		p.mistake("chunk has too many syntax levels", "")
	}
}

func (p *parser) simple() expression {
	var e expression
	switch p.token.kind {
	case tkNumber:
		e = &constantExpr{p.token.number}
	case tkString:
		e = &constantExpr{p.token.text}
	case tkNil:
		e = &constantExpr{nil}
	case tkTrue:
		e = &constantExpr{true}
	case tkFalse:
		e = &constantExpr{false}
	case tkDots:
		if !p.scope.isVararg {
			p.complain("cannot use '...' outside a vararg function")
		}
		p.scope.usesDots = true
		e = &dotsExpr{}
	case '{':
		return p.table()
	case tkFunction:
		p.next()
		return &functionExpr{p.functionBody(false, p.line)}
	default:
		return p.suffixed()
	}
	p.next()
	return e
}

// prefix is what a chain of calls and indices begins with.
func (p *parser) prefix() expression {
	switch p.token.kind {
	case '(':
		line := p.line
		p.next()
		e := p.expression()
		p.close(')', '(', line)
		if isMulti(e) || isAssignable(e) {
			return &parenExpr{e}
		}
		return e
	case tkName:
		line := p.line
		return p.variable(p.nameText(), line)
	}
	p.complain("unexpected symbol")
	return nil
}

func (p *parser) suffixed() expression {
	e := p.prefix()
	for chain := 0; ; chain++ {
		p.checkChain(chain)
		switch p.token.kind {
		case '.':
			p.next()
			e = &indexExpr{e, &constantExpr{p.nameText()}, p.lastLine}
		case '[':
			p.next()
			key := p.expression()
			p.expect(']')
			e = &indexExpr{e, key, p.lastLine}
		case ':':
			p.next()
			method := p.nameText()
			call := &callExpr{function: e, method: method, selfLine: p.lastLine}
			p.arguments(call)
			e = call
		case '(', tkString, '{':
			call := &callExpr{function: e}
			p.arguments(call)
			e = call
		default:
			return e
		}
	}
}

func (p *parser) arguments(call *callExpr) {
	call.line = p.line
	switch p.token.kind {
	case '(':
		if p.line != p.lastLine {
			p.complain("ambiguous syntax (function call x new statement)")
		}
		p.next()
		if p.token.kind != ')' {
			call.args = p.expressions()
		}
		p.close(')', '(', call.line)
	case '{':
		call.args = []expression{p.table()}
	case tkString:
		call.args = []expression{&constantExpr{p.token.text}}
		p.next()
	default:
		p.complain("function arguments expected")
	}
}

func (p *parser) table() expression {
	line := p.line
	e := &tableExpr{line: line}
	p.expect('{')
	for p.token.kind != '}' {
		e.items = append(e.items, p.tableItem())
		if !p.accept(',') && !p.accept(';') {
			break
		}
	}
	p.close('}', '{', line)
	return e
}

func (p *parser) tableItem() (item tableItem) {
	switch {
	case p.token.kind == '[':
		p.next()
		item.key = p.expression()
		p.expect(']')
	case p.token.kind == tkName && p.peekKind() == '=':
		item.key = &constantExpr{p.nameText()}
	default:
		return tableItem{value: p.expression()}
	}
	p.expect('=')
	item.value = p.expression()
	return item
}

// functionBody parses from the parameters to the end.
func (p *parser) functionBody(method bool, line int) *function {
	s := p.openFunction(line)
	p.expect('(')
	if method {
		p.parameter("self")
	}
	for p.token.kind != ')' {
		if p.accept(tkDots) {
			s.isVararg = true
			s.needsArg = p.parameter("arg")
			s.params = s.params[:len(s.params)-1]
			break
		}
		if p.token.kind != tkName {
			p.complain("<name> or '...' expected")
		}
		p.parameter(p.nameText())
		if !p.accept(',') {
			break
		}
		if p.token.kind == ')' {
			p.complain("<name> or '...' expected")
		}
	}
	p.expect(')')
	s.body = p.chunk()
	p.close(tkEnd, tkFunction, line)
	return p.closeFunction()
}

func (p *parser) parameter(name string) *local {
	l := p.newLocal(name, 0)
	p.scope.params = append(p.scope.params, l)
	p.scope.show(l)
	return l
}
