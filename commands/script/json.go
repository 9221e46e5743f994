package script

import (
	"fmt"
	"math"

	"redlock-proxy/commands/script/lua"
)

// jsonConfig are the settings of cjson.
type jsonConfig struct {
	sparseConvert    bool // write an array with too many holes as an object, else it is an error
	sparseRatio      int
	sparseSafe       int
	encodeDepth      int
	decodeDepth      int
	encodeInvalid    string // off, on or null
	decodeInvalid    bool
	encodePrecision  int
	encodeKeepBuffer bool
}

var defaultJSON = jsonConfig{
	sparseRatio: 2, sparseSafe: 10, encodeDepth: 1000, decodeDepth: 1000, encodeInvalid: "off", decodeInvalid: true, encodePrecision: 14,
	encodeKeepBuffer: true,
}

// maxJSONDepth bounds what a script may set, as Go's stack is not to grow with it.
const maxJSONDepth = 100000

var jsonLibrary = []lua.Entry{
	{Name: "encode", Value: jsonEncode},
	{Name: "decode", Value: jsonDecode},
	{Name: "encode_sparse_array", Value: func(c *lua.Call) []lua.Value {
		j := configure(c, 3)
		return c.Return(j.flag(1, &j.sparseConvert), j.integer(2, &j.sparseRatio, 0, math.MaxInt32), j.integer(3, &j.sparseSafe, 0, math.MaxInt32))
	}},
	{Name: "encode_max_depth", Value: func(c *lua.Call) []lua.Value {
		j := configure(c, 1)
		return c.Return(j.integer(1, &j.encodeDepth, 1, math.MaxInt32))
	}},
	{Name: "decode_max_depth", Value: func(c *lua.Call) []lua.Value {
		j := configure(c, 1)
		return c.Return(j.integer(1, &j.decodeDepth, 1, math.MaxInt32))
	}},
	{Name: "encode_number_precision", Value: func(c *lua.Call) []lua.Value {
		j := configure(c, 1)
		return c.Return(j.integer(1, &j.encodePrecision, 1, 14))
	}},
	{Name: "encode_keep_buffer", Value: func(c *lua.Call) []lua.Value {
		j := configure(c, 1)
		return c.Return(j.flag(1, &j.encodeKeepBuffer))
	}},
	{Name: "encode_invalid_numbers", Value: func(c *lua.Call) []lua.Value { return c.Return(configure(c, 1).invalidNumbers()) }},
	{Name: "decode_invalid_numbers", Value: func(c *lua.Call) []lua.Value {
		j := configure(c, 1)
		return c.Return(j.flag(1, &j.decodeInvalid))
	}},
	{Name: "new", Value: absent("cjson", "new")[0].Value},
	{Name: "null", Value: lua.Null},
	{Name: "_NAME", Value: "cjson"},
	{Name: "_VERSION", Value: "2.1.0"},
}

// jsonSetting is a call that changes settings.
type jsonSetting struct {
	*lua.Call
	*jsonConfig
}

func configure(c *lua.Call, most int) jsonSetting {
	if c.NArgs() > most {
		c.BadArg(most+1, "found too many arguments")
	}
	return jsonSetting{c, &runOf(c).json}
}

func (j jsonSetting) flag(i int, setting *bool) lua.Value {
	switch v := j.Arg(i).(type) {
	case nil:
	case bool:
		*setting = v
	default:
		*setting = j.option(i, "off", "on") == "on"
	}
	return *setting
}

// option is an argument that must be one of some words.
func (j jsonSetting) option(i int, words ...string) string {
	text := j.WantString(i)
	for _, word := range words {
		if text == word {
			return word
		}
	}
	j.BadArg(i, fmt.Sprintf("invalid option '%s'", text))
	return ""
}

func (j jsonSetting) integer(i int, setting *int, low, high int) lua.Value {
	if j.Arg(i) != nil {
		n := j.WantInt32(i)
		if n < low || n > high {
			j.BadArg(1, fmt.Sprintf("expected integer between %d and %d", low, high))
		}
		*setting = n
	}
	return float64(*setting)
}

func (j jsonSetting) invalidNumbers() lua.Value {
	switch v := j.Arg(1).(type) {
	case nil:
	case bool:
		j.encodeInvalid = "off"
		if v {
			j.encodeInvalid = "on"
		}
	default:
		j.encodeInvalid = j.option(1, "off", "on", "null")
	}
	if j.encodeInvalid == "null" {
		return "null"
	}
	return j.encodeInvalid == "on"
}
