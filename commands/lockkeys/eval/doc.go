// Package eval runs EVAL and similar commands on lock keys. It searches scripts, and the functions
// of the upstream (functions.go), for lock keys. The result decides where a script runs. The proxy
// refuses a function that may use a lock key (route.go). A script on lock keys is a program
// (run.go); call.go carries out each redis.call. The proxy and the masters keep the bodies of
// scripts (cache.go), for SCRIPT (script.go).
package eval
