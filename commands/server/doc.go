// Package server is what the proxy says of itself: what clients send when they connect or look
// around (HELLO, CLIENT, INFO, CONFIG GET, COMMAND …), where there is no upstream that answers, and
// the operator's PROXY. Where there is an upstream, ours is merged into its replies to COMMAND and
// INFO.
package server
