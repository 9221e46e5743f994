// Package status tests the status page in a real browser. A headless Chromium opens the page of a
// real proxy with real masters, and some of the masters fail. The tests need the build tag
// integration.
package status
