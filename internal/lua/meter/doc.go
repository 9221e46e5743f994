// Package meter counts what a run of Lua spends, and ends it when that is too much.
package meter
