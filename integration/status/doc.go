// Package status tests the status page in a real browser: a headless Chromium looks at the page of
// a real proxy before real masters, which fail. The tests need the build tag integration.
package status
