// Package browser drives a headless Chromium for tests, over the pipe of its DevTools protocol: a
// page is opened, looked at by JavaScript, and photographed; what it asked for is known.
//
//	b := browser.Start(t)
//	page := b.Open(t, "http://127.0.0.1:9380/", browser.Look{Width: 360, Dark: true})
//	page.Soon(t, `document.querySelectorAll("#masters tr").length === 5`)
//
// Where there is no Chromium, the test is skipped, or fails where everything is required.
package browser
