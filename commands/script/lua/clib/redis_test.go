//go:build integration

package clib

import (
	"math/rand/v2"
	"testing"

	"github.com/redis/go-redis/v9"

	"redlock-proxy/internal/redistest"
)

// Logarithms, exp and powers have the digits of the C library: all 14 that tostring shows, and all 17 but for one in 500.
func TestMathAsInRedis(t *testing.T) {
	const source = `local x, y = ARGV[1], ARGV[2] return {string.format("%.17g", math.log(x)), string.format("%.17g", math.log10(x)),
		string.format("%.17g", math.exp(y)), string.format("%.17g", x ^ y)}`
	client, random := redis.NewClient(&redis.Options{Addr: redistest.New(t, redistest.Options{}).Addr()}), rand.New(rand.NewPCG(3, 3))
	defer client.Close()
	const numbers = 5000
	different := 0
	for range numbers {
		x, y := anyNumber(random), 40*random.Float64()-20
		theirs, err := client.Eval(t.Context(), source, nil, FormatG(x, 17), FormatG(y, 17)).StringSlice()
		if err != nil {
			t.Fatal(err)
		}
		for i, n := range []float64{Log(x), Log10(x), Exp(y), Power(x, y)} {
			want, _ := ParseNumber(theirs[i])
			if FormatG(n, 14) != FormatG(want, 14) {
				t.Errorf("%d of %.17g and %.17g: %.17g, there %s", i, x, y, n, theirs[i])
			}
			if FormatG(n, 17) != theirs[i] {
				different++
			}
		}
	}
	t.Logf("%d of %d results differ in their 17 digits", different, 4*numbers)
	if different > 4*numbers/500 {
		t.Errorf("too many")
	}
}
