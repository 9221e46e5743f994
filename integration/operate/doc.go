// Package operate tests the program as an operator uses it: commands and settings, checks and their
// results, starting and stopping, logs, metrics and INFO. The tests need the build tag integration.
package operate
