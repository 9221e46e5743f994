// Package describe presents the command line: as help, as a completion script of bash or zsh, and
// as a manual page. All texts are generated from the definition of the command line, so they always
// agree with it.
package describe
