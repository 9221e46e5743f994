// Package describe presents the command line: as help, as a completion script of bash or zsh, and
// as a manual page. It generates all texts from the definition of the command line, so the texts
// always agree with it.
package describe
