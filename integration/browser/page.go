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

// Look is how a page is looked at.
type Look struct {
	Width, Height int // in CSS pixels; default 1280 × 900
	// Scale is how many pixels of the picture one of these has; default 1.
	Scale float64
	Dark  bool
}

// Page is one that is open.
type Page struct {
	browser *Browser
	session string

	mu sync.Mutex
	// asked are the URLs that it asked for, complaints what its console says.
	asked, complaints []string
}

// Open opens a page.
func (b *Browser) Open(t testing.TB, url string, look Look) *Page {
	t.Helper()
	if look.Width == 0 {
		look.Width = 1280
	}
	if look.Height == 0 {
		look.Height = 900
	}
	if look.Scale == 0 {
		look.Scale = 1
	}
	var target struct {
		ID string `json:"targetId"`
	}
	b.ask(t, "", "Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct {
		Session string `json:"sessionId"`
	}
	b.ask(t, "", "Target.attachToTarget", map[string]any{"targetId": target.ID, "flatten": true}, &attached)
	p := &Page{browser: b, session: attached.Session}
	b.mu.Lock()
	b.hears[p.session] = p.hear
	b.mu.Unlock()
	for _, domain := range []string{"Network", "Runtime", "Log", "Page"} {
		p.ask(t, domain+".enable", nil, nil)
	}
	p.ask(t, "Emulation.setDeviceMetricsOverride", map[string]any{
		"width": look.Width, "height": look.Height, "deviceScaleFactor": look.Scale, "mobile": look.Width < 600}, nil)
	scheme := "light"
	if look.Dark {
		scheme = "dark"
	}
	p.ask(t, "Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]any{"name": "prefers-color-scheme", "value": scheme}}}, nil)
	p.ask(t, "Page.navigate", map[string]any{"url": url}, nil)
	return p
}

// hear notes what the page asks for, and what goes wrong in it.
func (p *Page) hear(method string, params json.RawMessage) {
	var said struct {
		Request          struct{ URL string }
		Entry            struct{ Text, URL string }
		ExceptionDetails struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	if json.Unmarshal(params, &said) != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch method {
	case "Network.requestWillBeSent":
		p.asked = append(p.asked, said.Request.URL)
	case "Log.entryAdded":
		p.complaints = append(p.complaints, said.Entry.Text+" "+said.Entry.URL)
	case "Runtime.exceptionThrown":
		p.complaints = append(p.complaints, said.ExceptionDetails.Text+" "+said.ExceptionDetails.Exception.Description)
	}
}

// Asked are the URLs that the page asked for until now.
func (p *Page) Asked() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.asked...)
}

// Complaints are what its console says, and exceptions of its scripts.
func (p *Page) Complaints() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.complaints...)
}

func (b *Browser) ask(t testing.TB, session, method string, params, into any) {
	t.Helper()
	result, err := b.send(session, method, params)
	must(t, err)
	if into != nil {
		must(t, json.Unmarshal(result, into))
	}
}

func (p *Page) ask(t testing.TB, method string, params, into any) {
	t.Helper()
	p.browser.ask(t, p.session, method, params, into)
}

// Eval is the value of a JavaScript expression in the page. A promise is awaited; what is thrown is
// an error.
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

// Text is what is to be read in the page, or in what a selector finds first.
func (p *Page) Text(t testing.TB, selector string) string {
	t.Helper()
	quoted, _ := json.Marshal(selector)
	got, err := p.Eval("document.querySelector(" + string(quoted) + ").innerText")
	must(t, err)
	text, _ := got.(string)
	return text
}

// Soon wants an expression to be true within a time, and tells what the page shows if it is not. It
// returns how long that took.
func (p *Page) Soon(t testing.TB, within time.Duration, expression string) time.Duration {
	t.Helper()
	began := time.Now()
	for {
		got, err := p.Eval(expression)
		took := time.Since(began)
		switch {
		case err == nil && got == true:
			return took
		case took > within:
			t.Fatalf("not within %v: %s (%v, %v); the page shows\n%s\nand complains: %s", within, expression, got, err,
				p.Text(t, "body"), strings.Join(p.Complaints(), "\n"))
		}
		time.Sleep(10 * time.Millisecond) // polls
	}
}

// Picture takes a picture of the page from its top, so many pixels high (0: all of it), and writes
// it as a PNG.
func (p *Page) Picture(t testing.TB, path string, height int) {
	t.Helper()
	params := map[string]any{"format": "png", "captureBeyondViewport": true}
	if height > 0 {
		width, err := p.Eval("innerWidth")
		must(t, err)
		params["clip"] = map[string]any{"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
	}
	var shot struct{ Data []byte }
	p.ask(t, "Page.captureScreenshot", params, &shot)
	picture, err := png.Decode(bytes.NewReader(shot.Data))
	must(t, err)
	var small bytes.Buffer
	must(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&small, picture))
	must(t, os.WriteFile(path, small.Bytes(), 0o644))
}
