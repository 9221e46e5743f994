package figures

import (
	"fmt"
	"io"
	"math"
	"strings"
)

// Curves holds one curve for each of several contenders.
type Curves struct {
	Title   string
	XLabel  string    // the name of the x axis
	XValues []float64 // the x values, all positive
	Names   []string  // names of the contenders
	// YValues holds, for each element of XValues, the y values of the contenders in the order of
	// Names. Zero means that the value was not measured.
	YValues [][]float64
}

// The sizes of the picture, in units of SVG.
const (
	panelWidth, panelHeight = 420, 300
	marginLeft, marginTop   = 64, 40
	plotWidth, plotHeight   = 330, 200
)

// palette returns the colours of the contenders. People with red-green colour blindness can
// distinguish them.
func palette() []string { return []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7"} }

// WriteSVG draws panels side by side. Both axes are logarithmic.
func WriteSVG(w io.Writer, panels ...Curves) error {
	var b strings.Builder
	width, height := panelWidth*len(panels), panelHeight
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" `+
		`font-family="sans-serif" font-size="11">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	for i, c := range panels {
		fmt.Fprintf(&b, `<g transform="translate(%d,0)">`+"\n", i*panelWidth)
		c.draw(&b)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// axis describes a logarithmic axis. It extends from a power of the base that is at most the lowest
// value to a power that is at least the highest value.
type axis struct{ low, high float64 }

func axisOf(base float64, values []float64) axis {
	a := axis{low: math.Inf(1), high: math.Inf(-1)}
	for _, v := range values {
		if v > 0 {
			exponent := math.Log(v) / math.Log(base)
			a.low, a.high = min(a.low, math.Floor(exponent+1e-9)), max(a.high, math.Ceil(exponent-1e-9))
		}
	}
	switch {
	case a.low > a.high:
		a = axis{low: 0, high: 1}
	case a.low == a.high:
		a.high++
	}
	a.low, a.high = math.Pow(base, a.low), math.Pow(base, a.high)
	return a
}

// position returns the position of a value on the axis, from 0 to 1.
func (a axis) position(v float64) float64 { return math.Log(v/a.low) / math.Log(a.high/a.low) }

func (c Curves) draw(b *strings.Builder) {
	var all []float64
	for _, values := range c.YValues {
		all = append(all, values...)
	}
	across, up := axisOf(2, c.XValues), axisOf(10, all)
	x := func(v float64) float64 { return marginLeft + plotWidth*across.position(v) }
	y := func(v float64) float64 { return marginTop + plotHeight*(1-up.position(v)) }
	fmt.Fprintf(b, `<text x="%d" y="20" font-size="13">%s</text>`+"\n", marginLeft, c.Title)
	for v := up.low; v <= up.high*1.01; v *= 10 {
		fmt.Fprintf(b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/>`+"\n",
			marginLeft, marginLeft+plotWidth, y(v), y(v))
		fmt.Fprintf(b, `<text x="%d" y="%.1f" text-anchor="end">%g</text>`+"\n", marginLeft-6, y(v)+4, v)
	}
	for _, v := range c.XValues {
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%g</text>`+"\n", x(v), marginTop+plotHeight+16, v)
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n",
		marginLeft+plotWidth/2, marginTop+plotHeight+32, c.XLabel)
	for i, name := range c.Names {
		c.drawCurve(b, i, x, y)
		left := marginLeft + i*plotWidth/len(c.Names)
		fmt.Fprintf(b, `<text x="%d" y="%d" fill="%s">%s</text>`+"\n",
			left, panelHeight-8, palette()[i%len(palette())], name)
	}
}

// drawCurve draws the curve of contender number i.
func (c Curves) drawCurve(b *strings.Builder, i int, x, y func(float64) float64) {
	colour := palette()[i%len(palette())]
	var points []string
	for n, at := range c.XValues {
		if c.YValues[n][i] <= 0 {
			continue
		}
		points = append(points, fmt.Sprintf("%.1f,%.1f", x(at), y(c.YValues[n][i])))
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"><title>%s, %g %s: %.4g</title></circle>`+"\n",
			x(at), y(c.YValues[n][i]), colour, c.Names[i], at, c.XLabel, c.YValues[n][i])
	}
	fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n",
		strings.Join(points, " "), colour)
}
