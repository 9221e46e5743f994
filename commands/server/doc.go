// Package server implements the commands about the proxy itself. Without an upstream, it answers
// the commands that clients send when they connect or inspect a server (HELLO, CLIENT, INFO, CONFIG
// GET, COMMAND …). With an upstream, it merges the proxy's part into the replies to COMMAND and
// INFO. PROXY is for operators.
package server
