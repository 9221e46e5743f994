package script

import (
	"slices"

	"redlock-proxy/internal/lua"
)

// The default settings of cjson. Scripts cannot change them; no script of a lock library tries to.
const (
	// jsonSparseRatio and jsonSparseSafe limit the holes in an array: it may have jsonSparseRatio
	// times as many indices as elements, or jsonSparseSafe indices.
	jsonSparseRatio, jsonSparseSafe = 2, 10
	// jsonDepth limits how deep tables may be nested.
	jsonDepth = 1000
	// jsonDigits is the number of significant digits of a number.
	jsonDigits = 14
)

var jsonLibrary = slices.Concat([]lua.Entry{
	{Name: "encode", Value: jsonEncode},
	{Name: "decode", Value: jsonDecode},
	{Name: "null", Value: lua.Null},
	{Name: "_NAME", Value: "cjson"},
	{Name: "_VERSION", Value: "2.1.0"},
}, unavailableFunctions("cjson", "new", "encode_sparse_array", "encode_max_depth", "encode_number_precision",
	"encode_keep_buffer", "encode_invalid_numbers", "decode_max_depth", "decode_invalid_numbers"))
