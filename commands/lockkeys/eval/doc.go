// Package eval runs EVAL and similar commands on lock keys. A script, and the upstream's functions
// (functions.go), are looked through for lock keys to tell where they run (route.go); one that uses
// lock keys is a program (run.go), of which call.go carries out each redis.call. Bodies of scripts
// are kept here and on the masters (cache.go), as SCRIPT says (script.go).
package eval
