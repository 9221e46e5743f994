package server

import (
	"math"
	"strconv"
	"time"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
)

func ping(c command.Call) {
	text := ""
	if len(c.Args) == 2 {
		text = string(c.Args[1])
	}
	switch {
	case len(c.Args) > 2:
		c.Out.Error(syntax.WrongArity("ping"))
	case c.Client.OnlyListens():
		// The reply has the form of a message, because the client receives only messages.
		c.Out.Strings([]string{"pong", text})
	case len(c.Args) == 1:
		c.Out.Status("PONG")
	default:
		c.Out.Bulk(text)
	}
}

func echo(c command.Call) {
	c.Out.Bulk(string(c.Args[1]))
}

func selectDB(c command.Call) {
	n, ok := syntax.Int(c.Args[1])
	switch {
	case !ok:
		c.Out.Error(syntax.ErrNotInteger)
	case n < math.MinInt32 || n > math.MaxInt32:
		c.Out.Error("ERR value is out of range, value must between -2147483648 and 2147483647")
	case n < 0 || n >= databases:
		c.Out.Error("ERR DB index is out of range")
	default:
		c.Client.DB = int(n)
		c.Out.Status("OK")
	}
}

func quit(c command.Call) {
	c.Client.Closing = true
	c.Out.Status("OK")
}

func reset(c command.Call) {
	c.Client.Reset(c.Out)
	c.Out.Status("RESET")
}

func serverTime(c command.Call) {
	t := time.Now()
	c.Out.Strings([]string{strconv.FormatInt(t.Unix(), 10), strconv.Itoa(t.Nanosecond() / 1000)})
}

func replyNoCluster(c command.Call) {
	c.Out.Error("ERR This instance has cluster support disabled")
}
