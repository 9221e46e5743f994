// Package escape makes texts from clients and servers safe to show to an operator: it escapes bytes
// and characters that are invisible, that control a terminal, or that change the direction of text.
package escape
