package syntax

func (p *parser) expressions() []Expression {
	list := []Expression{p.expression()}
	for p.accept(',') {
		list = append(list, p.expression())
	}
	return list
}

// precedence returns the left and the right priority of a binary operator, as in C Lua. It returns
// 0 for other tokens.
func precedence(k Kind) (left, right int) {
	switch k {
	case '+', '-':
		return 6, 6
	case '*', '/', '%':
		return 7, 7
	case '^':
		return 10, 9
	case Concat:
		return 5, 4
	case Eq, Ne, '<', Le, '>', Ge:
		return 3, 3
	case And:
		return 2, 2
	case Or:
		return 1, 1
	}
	return 0, 0
}

const unaryPrecedence = 8

func (p *parser) expression() Expression { return p.subexpression(0) }

// subexpression parses an expression whose operators bind tighter than limit.
func (p *parser) subexpression(limit int) Expression {
	defer p.enter()()
	var e Expression
	switch k := p.token.kind; k {
	case Not, '-', '#':
		p.next()
		operand := p.subexpression(unaryPrecedence)
		e = foldUnary(&UnaryExpr{k, operand, p.lastLine})
	default:
		e = p.simpleExpr()
	}
	for {
		operator := p.token.kind
		left, right := precedence(operator)
		if left <= limit {
			return e
		}
		p.next()
		operand := p.subexpression(right)
		p.addLink()
		e = foldBinary(&BinaryExpr{operator, e, operand, p.lastLine})
	}
}

func (p *parser) simpleExpr() Expression {
	var e Expression
	switch p.token.kind {
	case tkNumber:
		e = &ConstantExpr{p.token.number}
	case tkString:
		e = &ConstantExpr{p.token.text}
	case tkNil:
		e = &ConstantExpr{nil}
	case tkTrue:
		e = &ConstantExpr{true}
	case tkFalse:
		e = &ConstantExpr{false}
	case tkDots:
		if !p.scope.IsVararg {
			p.failAtToken("cannot use '...' outside a vararg function")
		}
		p.scope.usesDots = true
		e = &DotsExpr{}
	case '{':
		return p.tableExpr()
	case tkFunction:
		p.next()
		return &FunctionExpr{p.functionBody(false, p.line)}
	default:
		return p.suffixedExpr()
	}
	p.next()
	return e
}

// prefixExpr parses the beginning of a chain of calls and indices.
func (p *parser) prefixExpr() Expression {
	switch p.token.kind {
	case '(':
		line := p.line
		p.next()
		e := p.expression()
		p.expectClosing(')', '(', line)
		if IsMulti(e) || IsAssignable(e) {
			return &ParenExpr{e}
		}
		return e
	case tkName:
		line := p.line
		return p.variable(p.nameText(), line)
	}
	p.failAtToken("unexpected symbol")
	return nil
}

func (p *parser) suffixedExpr() Expression {
	defer p.beginLinks()()
	for e := p.prefixExpr(); ; p.addLink() {
		switch p.token.kind {
		case '.':
			p.next()
			e = &IndexExpr{e, &ConstantExpr{p.nameText()}, p.lastLine}
		case '[':
			p.next()
			key := p.expression()
			p.expect(']')
			e = &IndexExpr{e, key, p.lastLine}
		case ':':
			p.next()
			method := p.nameText()
			call := &CallExpr{Function: e, Method: method, SelfLine: p.lastLine}
			p.arguments(call)
			e = call
		case '(', tkString, '{':
			call := &CallExpr{Function: e}
			p.arguments(call)
			e = call
		default:
			return e
		}
	}
}

func (p *parser) arguments(call *CallExpr) {
	call.Line = p.line
	switch p.token.kind {
	case '(':
		if p.line != p.lastLine {
			p.failAtToken("ambiguous syntax (function call x new statement)")
		}
		p.next()
		if p.token.kind != ')' {
			call.Args = p.expressions()
		}
		p.expectClosing(')', '(', call.Line)
	case '{':
		call.Args = []Expression{p.tableExpr()}
	case tkString:
		call.Args = []Expression{&ConstantExpr{p.token.text}}
		p.next()
	default:
		p.failAtToken("function arguments expected")
	}
}

func (p *parser) tableExpr() Expression {
	line := p.line
	e := &TableExpr{Line: line}
	p.expect('{')
	for p.token.kind != '}' {
		e.Items = append(e.Items, p.tableItem())
		if !p.accept(',') && !p.accept(';') {
			break
		}
	}
	p.expectClosing('}', '{', line)
	return e
}

func (p *parser) tableItem() (item TableItem) {
	switch {
	case p.token.kind == '[':
		p.next()
		item.Key = p.expression()
		p.expect(']')
	case p.token.kind == tkName && p.peekKind() == '=':
		item.Key = &ConstantExpr{p.nameText()}
	default:
		return TableItem{Value: p.expression()}
	}
	p.expect('=')
	item.Value = p.expression()
	return item
}

// functionBody parses a function from its parameters to its end.
func (p *parser) functionBody(isMethod bool, line int) *Function {
	s := p.openFunction(line)
	p.expect('(')
	if isMethod {
		p.parameter("self")
	}
	for p.token.kind != ')' {
		if p.accept(tkDots) {
			s.IsVararg = true
			s.ArgTable = p.parameter("arg")
			s.Params = s.Params[:len(s.Params)-1]
			break
		}
		if p.token.kind != tkName {
			p.failAtToken("<name> or '...' expected")
		}
		p.parameter(p.nameText())
		if !p.accept(',') {
			break
		}
		if p.token.kind == ')' {
			p.failAtToken("<name> or '...' expected")
		}
	}
	p.expect(')')
	s.Body = p.chunk()
	p.expectClosing(tkEnd, tkFunction, line)
	return p.closeFunction()
}

func (p *parser) parameter(name string) *Local {
	l := p.newLocal(name, 0)
	p.scope.Params = append(p.scope.Params, l)
	p.scope.declare(l)
	return l
}
