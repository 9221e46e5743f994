package geo

// cell is a part of the map, made by halving both axes so many times. Its bits are those of the halves, by turns of the longitude and the
// latitude.
type cell struct {
	bits  uint64
	steps uint8
}

// isNone is true of a cell that is left out.
func (c cell) isNone() bool { return c == cell{} }

// cellOf is the cell in which a position lies, of a map that ends at a latitude.
func cellOf(p Position, steps uint8, latitude float64) cell {
	scale := float64(uint64(1) << steps)
	x := (p.Longitude + maxLongitude) / (2 * maxLongitude) * scale
	y := (p.Latitude + latitude) / (latitude + latitude) * scale
	return cell{spread(uint32(x))<<1 | spread(uint32(y)), steps}
}

// spread puts a zero before each bit.
func spread(n uint32) uint64 {
	x := uint64(n)
	x = (x | x<<16) & 0x0000ffff0000ffff
	x = (x | x<<8) & 0x00ff00ff00ff00ff
	x = (x | x<<4) & 0x0f0f0f0f0f0f0f0f
	x = (x | x<<2) & 0x3333333333333333
	return (x | x<<1) & evenBits
}

// gather is every second bit, from the lowest on.
func gather(x uint64) uint32 {
	x &= evenBits
	x = (x | x>>1) & 0x3333333333333333
	x = (x | x>>2) & 0x0f0f0f0f0f0f0f0f
	x = (x | x>>4) & 0x00ff00ff00ff00ff
	x = (x | x>>8) & 0x0000ffff0000ffff
	return uint32(x | x>>16)
}

// edges are where a cell ends.
func (c cell) edges() (west, east, south, north float64) {
	x, y := gather(c.bits>>1), gather(c.bits)
	const wide, high = 2.0 * maxLongitude, 2.0 * maxLatitude
	return c.edge(x, -maxLongitude, wide), c.edge(x+1, -maxLongitude, wide), c.edge(y, -maxLatitude, high), c.edge(y+1, -maxLatitude, high)
}

func (c cell) edge(at uint32, from, size float64) float64 {
	return from + float64(float64(at)/float64(uint64(1)<<c.steps)*size)
}

const (
	evenBits uint64 = 0x5555555555555555 // those of the latitude
	oddBits  uint64 = 0xaaaaaaaaaaaaaaaa // those of the longitude
)

// beside is the cell that lies so many cells, -1, 0 or 1, to the east and to the north. The map has no borders.
func (c cell) beside(east, north int) cell {
	unused := 64 - 2*c.steps
	x, y := c.bits&oddBits, c.bits&evenBits
	if east != 0 {
		x = moved(x, evenBits>>unused, east) & (oddBits >> unused)
	}
	if north != 0 {
		y = moved(y, oddBits>>unused, north) & (evenBits >> unused)
	}
	return cell{x | y, c.steps}
}

// moved adds to the bits of one axis; between holds those of the other one.
func moved(bits, between uint64, by int) uint64 {
	if by > 0 {
		return bits + (between + 1) // the carry passes the bits between
	}
	return bits | between - (between + 1)
}

// scores are those of the positions in a cell, from the first one up to before the second.
func (c cell) scores() (from, to float64) {
	shift := 2*finest - 2*c.steps
	return float64(c.bits << shift), float64((c.bits + 1) << shift)
}
