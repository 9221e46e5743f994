package geo

import (
	"math"
	"strconv"

	"redlock-proxy/commands/script/lua/clib"
)

// earth is its mean radius in meters.
const earth = 6372797.560856

// degree is one in radians, rounded as C's is.
const degree = float64(math.Pi) / 180

func radians(degrees float64) float64 { return degrees * degree }

// Distance is that of two positions in meters, on a sphere.
func Distance(a, b Position) float64 {
	v := clib.Sin((radians(b.Longitude) - radians(a.Longitude)) / 2)
	if v == 0 {
		return alongMeridian(a.Latitude, b.Latitude)
	}
	from, to := radians(a.Latitude), radians(b.Latitude)
	u := clib.Sin((to - from) / 2)
	h := float64(u*u) + float64(clib.Cos(from)*clib.Cos(to)*v*v)
	return 2 * earth * clib.Asin(math.Sqrt(h))
}

// alongMeridian is the distance of two latitudes.
func alongMeridian(a, b float64) float64 { return earth * math.Abs(radians(b)-radians(a)) }

// FormatDistance is a distance as Redis tells it: with four digits after the point.
func FormatDistance(d float64) string {
	const digits, unit = 4, 10_000
	scaled := clib.Truncate(math.RoundToEven(d * unit))
	whole, rest := scaled/unit, scaled%unit
	sign := ""
	if scaled < 0 {
		sign, whole, rest = "-", -whole, -rest
	}
	padded := strconv.FormatInt(unit+rest, 10)
	return sign + strconv.FormatInt(whole, 10) + "." + padded[len(padded)-digits:]
}
