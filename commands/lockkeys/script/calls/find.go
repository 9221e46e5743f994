package calls

import (
	"slices"

	"redlock-proxy/internal/lua/meter"
	"redlock-proxy/internal/lua/syntax"
)

// findChanges sets Hidden if a statement changes KEYS, ARGV or redis, because calls or keys are
// then unknown.
func (f *finder) findChanges(s syntax.Statement) {
	assign, ok := s.(*syntax.AssignStmt)
	if !ok {
		return
	}
	for _, target := range assign.Targets {
		if index, ok := target.(*syntax.IndexExpr); ok {
			f.Hidden = f.Hidden || f.mayBeKeysOrArgv(index.Object) || f.isRedis(index.Object)
		}
		switch variableName(target) {
		case "KEYS", "ARGV", "redis", "server":
			f.Hidden = true
		}
	}
}

// mayBeKeysOrArgv reports whether an expression may be KEYS or ARGV.
func (f *finder) mayBeKeysOrArgv(e syntax.Expression) bool {
	return slices.ContainsFunc(f.listKinds(e), func(kind PartKind) bool { return kind != UnknownPart })
}

func (f *finder) isRedis(e syntax.Expression) bool {
	return slices.ContainsFunc(f.origins(e), func(o syntax.Expression) bool { return isGlobal(o, "redis", "server") })
}

func isGlobal(e syntax.Expression, names ...string) bool {
	g, ok := e.(*syntax.GlobalExpr)
	return ok && slices.Contains(names, g.Name)
}

// visit checks an expression in its context. It records a call of a command, and sets Hidden if the
// expression may lead to further calls.
func (f *finder) visit(e syntax.Expression, p usage) {
	f.meter.ChargeWork(meter.Step)
	if call, ok := e.(*syntax.CallExpr); ok {
		if f.mayBeRedisCall(call.Function) && call.Method == "" {
			f.addSite(call.Args)
		}
		f.Hidden = f.Hidden || call.Method != "" && (f.isRedis(call.Function) || f.mayBeKeysOrArgv(call.Function))
		return
	}
	switch {
	case isGlobal(e, "_G", "getfenv", "setfenv", "loadstring", "load", "dofile", "loadfile", "require", "debug",
		"newproxy"):
		f.Hidden = true
		f.compilesCode = true // all of these can compile code
	case variableName(e) != "" && p == usageValue:
		f.Hidden = f.Hidden || f.mayBeRedisCall(e) || f.isRedis(e) || f.mayBeKeysOrArgv(e)
	case fieldName(e, "redis", "server") != "" || f.isRedisField(e):
		f.Hidden = f.Hidden || f.mayBeRedisCall(e) && p != usageCall && p != usageVariable || !hasConstantKey(e)
	}
}

// isRedisField reports whether an expression is a field of the table redis.
func (f *finder) isRedisField(e syntax.Expression) bool {
	index, ok := e.(*syntax.IndexExpr)
	return ok && f.isRedis(index.Object)
}

func hasConstantKey(e syntax.Expression) bool {
	index, ok := e.(*syntax.IndexExpr)
	if !ok {
		return false
	}
	_, ok = index.Key.(*syntax.ConstantExpr)
	return ok
}

// mayBeRedisCall reports whether an expression may be redis.call or redis.pcall.
func (f *finder) mayBeRedisCall(e syntax.Expression) bool {
	return slices.ContainsFunc(f.origins(e), func(o syntax.Expression) bool {
		index, ok := o.(*syntax.IndexExpr)
		if !ok || !f.isRedis(index.Object) {
			return false
		}
		key, ok := index.Key.(*syntax.ConstantExpr)
		return !ok || key.Value == "call" || key.Value == "pcall"
	})
}

// addSite records a call with its arguments.
func (f *finder) addSite(args []syntax.Expression) {
	var site Site
	for i, arg := range args {
		if i == len(args)-1 && syntax.IsMulti(arg) {
			site.Rest = f.argShapes(arg)
			break
		}
		site.Args = append(site.Args, f.shapes(arg, 0))
	}
	f.Sites = append(f.Sites, site)
}

// argShapes returns the possible shapes of the values of a call's last argument. This argument is
// an expression that may have any number of values.
func (f *finder) argShapes(e syntax.Expression) []Shape {
	call, ok := e.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 || call.Method != "" {
		return unknownShapes
	}
	switch {
	case variableName(call.Function) == "unpack", fieldName(call.Function, "table") == "unpack":
		return f.elementShapes(call.Args[0], &unknownExpr{})
	case variableName(call.Function) == "tostring":
		return f.shapes(call, 0)
	}
	return unknownShapes
}
