package model

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// String returns, as text, everything that determines the proxy's future.
func (p *proxy) String() string {
	var b strings.Builder
	dump(&b, reflect.ValueOf(p.register).Elem(), 0)
	dump(&b, reflect.ValueOf(p.source).Elem(), 0)
	fmt.Fprint(&b, " fired", p.callbackCount)
	for _, t := range p.tasks {
		fmt.Fprint(&b, " task", t.id, t.rounds, t.pauses, t.waitsForTurn, p.turnHolder == t, "[", t.inputs, "]")
	}
	for _, r := range p.rounds {
		fmt.Fprint(&b, " round", r.task.id, r.number, r.startedAt, r.pending, r.signature)
		for _, op := range r.ops {
			if op != nil {
				fmt.Fprint(&b, "(", p.op(op), ")")
			}
		}
	}
	for _, cb := range p.callbacks {
		fmt.Fprint(&b, " after", cb.name)
		if cb.needsRoundTime {
			fmt.Fprint(&b, " since", cb.createdAt)
		}
	}
	return b.String()
}

// digest returns a hash of the register and of the source of IDs. A task depends on both when it
// continues.
func (p *proxy) digest() string {
	var b strings.Builder
	dump(&b, reflect.ValueOf(p.register).Elem(), 0)
	dump(&b, reflect.ValueOf(p.source).Elem(), 0)
	return sumOf(b.String())
}

// sumOf returns a short hash of a text.
func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return string(sum[:8])
}

// dump writes a value with all its fields. It omits functions, channels, and fields that do not
// distinguish the states of a proxy.
func dump(b *strings.Builder, v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			fmt.Fprint(b, v.Field(0), ",", v.Field(1), ";")
			return
		}
		for i := range v.NumField() {
			switch v.Type().Field(i).Name {
			case "opts", "masters", "mu", "proxy", "proxyBytes", "mark":
				continue
			}
			dump(b, v.Field(i), depth+1)
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			dump(b, v.Elem(), depth+1)
		}
	case reflect.Slice, reflect.Array:
		b.WriteByte('[')
		for i := range v.Len() {
			dump(b, v.Index(i), depth+1)
		}
		b.WriteByte(']')
	case reflect.Map:
		fmt.Fprint(b, "{", v.Len(), ":")
		for _, k := range sortedKeys(v) {
			fmt.Fprint(b, k, "=")
			dump(b, v.MapIndex(k), depth+1)
		}
		b.WriteByte('}')
	case reflect.Func, reflect.Chan:
	default:
		fmt.Fprint(b, v, ";")
	}
}

// sortedKeys returns the keys of a map in the order of their texts.
func sortedKeys(m reflect.Value) []reflect.Value {
	all := m.MapKeys()
	slices.SortFunc(all, func(a, b reflect.Value) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return all
}
