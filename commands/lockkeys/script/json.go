package script

import (
	"slices"

	"redlock-proxy/internal/lua"
)

// What cjson does where nothing else is said; no lock library's script changes it, so the functions
// that would are left out.
const (
	// jsonSparseRatio and jsonSparseSafe bound the holes in an array: it may have so many times as
	// many places as items, or so many places.
	jsonSparseRatio, jsonSparseSafe = 2, 10
	// jsonDepth is how deep tables may be nested.
	jsonDepth = 1000
	// jsonDigits are those of a number.
	jsonDigits = 14
)

var jsonLibrary = slices.Concat([]lua.Entry{
	{Name: "encode", Value: jsonEncode},
	{Name: "decode", Value: jsonDecode},
	{Name: "null", Value: lua.Null},
	{Name: "_NAME", Value: "cjson"},
	{Name: "_VERSION", Value: "2.1.0"},
}, absent("cjson", "new", "encode_sparse_array", "encode_max_depth", "encode_number_precision", "encode_keep_buffer",
	"encode_invalid_numbers", "decode_max_depth", "decode_invalid_numbers"))
