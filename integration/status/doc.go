// Package status tests the status page in a real browser: a headless Chromium opens the page of a
// real proxy with real masters, some of which fail. The tests need the build tag integration.
package status
