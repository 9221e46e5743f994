// Package rights is what a client may do at the upstream, as the user that it is there: the
// questions that are asked before a command runs on the masters, and what is known of the
// answers. What a program on lock keys leaves for the upstream is agreed here, too, before
// anything is committed.
package rights
