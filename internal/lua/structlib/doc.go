// Package structlib has struct, the library of Redis' scripts that packs numbers and texts into a
// string. It answers, and fails, as that of Redis 7.0 does on x86: its C leaves open what a number
// too large for an integer becomes.
package structlib
