// Package operate tests the program as an operator uses it: commands and settings, checks and their
// results, how a proxy starts and stops, and its logs, metrics and INFO. The tests need the build
// tag integration.
package operate
