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
		c.Out.WriteError(syntax.WrongArity("ping"))
	case c.Client.OnlyListens():
		// The reply has the form of a message, because the client receives only messages.
		c.Out.WriteStrings([]string{"pong", text})
	case len(c.Args) == 1:
		c.Out.WriteStatus("PONG")
	default:
		c.Out.WriteBulk(text)
	}
}

func echo(c command.Call) {
	c.Out.WriteBulk(string(c.Args[1]))
}

func selectDB(c command.Call) {
	n, ok := syntax.Int(c.Args[1])
	switch {
	case !ok:
		c.Out.WriteError(syntax.ErrNotInteger)
	case n < math.MinInt32 || n > math.MaxInt32:
		c.Out.WriteError("ERR value is out of range, value must between -2147483648 and 2147483647")
	case n < 0 || n >= databases:
		c.Out.WriteError("ERR DB index is out of range")
	default:
		c.Client.DB = int(n)
		c.Out.WriteStatus("OK")
	}
}

func quit(c command.Call) {
	c.Client.Closing = true
	c.Out.WriteStatus("OK")
}

func reset(c command.Call) {
	c.Client.Reset(c.Out)
	c.Out.WriteStatus("RESET")
}

func serverTime(c command.Call) {
	t := time.Now()
	c.Out.WriteStrings([]string{strconv.FormatInt(t.Unix(), 10), strconv.Itoa(t.Nanosecond() / 1000)})
}

func replyNoCluster(c command.Call) {
	c.Out.WriteError("ERR This instance has cluster support disabled")
}
