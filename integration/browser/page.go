package browser

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image/png"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// Display configures the display of a page.
type Display struct {
	Width, Height int // in CSS pixels; default 1280 × 900
	// Scale is the number of pixels in a picture for each CSS pixel; default 1.
	Scale float64
	Dark  bool
}

// Page controls an open page.
type Page struct {
	browser *Browser
	session string

	mu sync.Mutex
	// requests lists the requested URLs. messages lists Chromium's log entries about the page, such
	// as failed requests, and the exceptions of the page's scripts.
	requests, messages []string
}

// Open opens a page.
func (b *Browser) Open(t testing.TB, url string, display Display) *Page {
	t.Helper()
	if display.Width == 0 {
		display.Width = 1280
	}
	if display.Height == 0 {
		display.Height = 900
	}
	if display.Scale == 0 {
		display.Scale = 1
	}
	var target struct {
		ID string `json:"targetId"`
	}
	b.call(t, "", "Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attachResult struct {
		Session string `json:"sessionId"`
	}
	b.call(t, "", "Target.attachToTarget", map[string]any{"targetId": target.ID, "flatten": true}, &attachResult)
	p := &Page{browser: b, session: attachResult.Session}
	b.mu.Lock()
	b.handlers[p.session] = p.handle
	b.mu.Unlock()
	for _, domain := range []string{"Network", "Runtime", "Log", "Page"} {
		p.call(t, domain+".enable", nil, nil)
	}
	p.call(t, "Emulation.setDeviceMetricsOverride", map[string]any{
		"width": display.Width, "height": display.Height, "deviceScaleFactor": display.Scale, "mobile": display.Width < 600}, nil)
	scheme := "light"
	if display.Dark {
		scheme = "dark"
	}
	p.call(t, "Emulation.setEmulatedMedia", map[string]any{
		"features": []any{map[string]any{"name": "prefers-color-scheme", "value": scheme}}}, nil)
	p.call(t, "Page.navigate", map[string]any{"url": url}, nil)
	return p
}

// handle records the requests, the log entries and the exceptions of the page.
func (p *Page) handle(method string, params json.RawMessage) {
	var event struct {
		Request          struct{ URL string }
		Entry            struct{ Text, URL string }
		ExceptionDetails struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	if json.Unmarshal(params, &event) != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch method {
	case "Network.requestWillBeSent":
		p.requests = append(p.requests, event.Request.URL)
	case "Log.entryAdded":
		p.messages = append(p.messages, event.Entry.Text+" "+event.Entry.URL)
	case "Runtime.exceptionThrown":
		p.messages = append(p.messages, event.ExceptionDetails.Text+" "+event.ExceptionDetails.Exception.Description)
	}
}

// RequestedURLs returns the URLs that the page has requested so far.
func (p *Page) RequestedURLs() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.requests...)
}

// ConsoleMessages returns Chromium's log entries about the page, such as failed requests, and the
// exceptions of its scripts. It does not return the output of console.log.
func (p *Page) ConsoleMessages() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.messages...)
}

func (b *Browser) call(t testing.TB, session, method string, params, dest any) {
	t.Helper()
	result, err := b.send(session, method, params)
	must(t, err)
	if dest != nil {
		must(t, json.Unmarshal(result, dest))
	}
}

func (p *Page) call(t testing.TB, method string, params, into any) {
	t.Helper()
	p.browser.call(t, p.session, method, params, into)
}

// Eval returns the value of a JavaScript expression in the page. It awaits a promise, and returns
// an exception as an error.
func (p *Page) Eval(expression string) (any, error) {
	result, err := p.browser.send(p.session, "Runtime.evaluate", map[string]any{
		"expression": expression, "returnByValue": true, "awaitPromise": true, "userGesture": true})
	if err != nil {
		return nil, err
	}
	var got struct {
		Result           struct{ Value any }
		ExceptionDetails *struct {
			Exception struct{ Description string }
		}
	}
	if err := json.Unmarshal(result, &got); err != nil {
		return nil, err
	}
	if got.ExceptionDetails != nil {
		return nil, fmt.Errorf("%s: %s", expression, got.ExceptionDetails.Exception.Description)
	}
	return got.Result.Value, nil
}

// Text returns the text of the first element that a selector finds.
func (p *Page) Text(t testing.TB, selector string) string {
	t.Helper()
	quoted, _ := json.Marshal(selector)
	got, err := p.Eval("document.querySelector(" + string(quoted) + ").innerText")
	must(t, err)
	text, _ := got.(string)
	return text
}

// WaitTrue waits until an expression is true, and returns the elapsed time. If the expression is
// not true within timeout, WaitTrue fails the test with the text of the page.
func (p *Page) WaitTrue(t testing.TB, timeout time.Duration, expression string) time.Duration {
	t.Helper()
	began := time.Now()
	for {
		got, err := p.Eval(expression)
		took := time.Since(began)
		switch {
		case err == nil && got == true:
			return took
		case took > timeout:
			t.Fatalf("not within %v: %s (%v, %v); the page shows\n%s\nand complains: %s", timeout, expression, got, err,
				p.Text(t, "body"), strings.Join(p.ConsoleMessages(), "\n"))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Screenshot writes a PNG of the page from its top. height is in CSS pixels; 0 means the whole
// page.
func (p *Page) Screenshot(t testing.TB, path string, height int) {
	t.Helper()
	params := map[string]any{"format": "png", "captureBeyondViewport": true}
	if height > 0 {
		width, err := p.Eval("innerWidth")
		must(t, err)
		params["clip"] = map[string]any{"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
	}
	var shot struct{ Data []byte }
	p.call(t, "Page.captureScreenshot", params, &shot)
	picture, err := png.Decode(bytes.NewReader(shot.Data))
	must(t, err)
	var compressed bytes.Buffer
	must(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&compressed, picture))
	must(t, os.WriteFile(path, compressed.Bytes(), 0o644))
}
