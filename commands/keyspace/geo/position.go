package geo

import "redlock-proxy/commands/script/lua/clib"

// Position is a place on the earth, in degrees.
type Position struct{ Longitude, Latitude float64 }

// The limits of positions: maps in the Mercator projection end there.
const (
	maxLongitude = 180
	maxLatitude  = 85.05112878
)

// finest is how often each axis is halved for a score, which has two bits for each time.
const finest = 26

// IsValid reports whether there is a score for a position.
func (p Position) IsValid() bool {
	return !(p.Longitude < -maxLongitude || p.Longitude > maxLongitude || p.Latitude < -maxLatitude || p.Latitude > maxLatitude)
}

// Score is the score that a valid position has in a sorted set.
func (p Position) Score() float64 { return float64(cellOf(p, finest, maxLatitude).bits) }

// Of is the position that a score stands for.
func Of(score float64) Position {
	west, east, south, north := cell{unsigned(score), finest}.edges()
	return Position{
		max(-maxLongitude, min((west+east)/2, maxLongitude)),
		max(-maxLatitude, min((south+north)/2, maxLatitude)),
	}
}

// Hash is the position in 11 letters and digits, as geohash.org has them, of which Redis knows the first 10.
func (p Position) Hash() string {
	const alphabet = "0123456789bcdefghjkmnpqrstuvwxyz"
	const perLetter, known = 5, 10
	bits := cellOf(p, finest, 90).bits
	var text [known + 1]byte
	for i := range known {
		text[i] = alphabet[bits>>(2*finest-perLetter*(i+1))&(1<<perLetter-1)]
	}
	text[known] = alphabet[0]
	return string(text[:])
}

// unsigned is the integer that C makes of a score on x86-64, also of one that no position has.
func unsigned(score float64) uint64 {
	const half = 1 << 63
	if score >= half {
		return uint64(clib.Truncate(score-half)) ^ half
	}
	return uint64(clib.Truncate(score))
}
