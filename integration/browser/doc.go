// Package browser controls a headless Chromium for tests, over the pipe of its DevTools protocol.
// It opens pages, evaluates JavaScript in them, takes screenshots, and records their requests.
//
//	b := browser.Start(t)
//	page := b.Open(t, "http://127.0.0.1:9380/", browser.Display{Width: 360, Dark: true})
//	page.WaitTrue(t, time.Second, `document.querySelectorAll("#masters tr").length === 5`)
//
// If Chromium is missing, Start skips the test, or fails it if all tests are required.
package browser
