// Package operate tests the program as its operator meets it: commands and settings, checks and
// their verdicts, how a proxy starts and stops, and what it tells of itself. The tests need the
// build tag integration.
package operate
