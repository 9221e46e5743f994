// Package describe shows shells and readers what the command line is: as a completion of bash or
// zsh, and as a page of the manual. All of it is made from the description that the command line
// has of itself, so it is never another one.
package describe
