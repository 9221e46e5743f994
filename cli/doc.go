// Package cli implements the command line: a file for each command, its help, and its exit codes.
package cli
