package geo

import (
	"math"

	"redlock-proxy/commands/script/lua/clib"
)

// area is what is searched: a circle, or a box where isBox is set. Its sizes are in a unit of so many meters.
type area struct {
	center                Position
	isBox                 bool
	radius, width, height float64
	unit                  float64
}

// holds reports whether a position lies in the area, and how far it is from the center, in meters.
func (a area) holds(p Position) (distance float64, ok bool) {
	if !a.isBox {
		distance = Distance(a.center, p)
		return distance, !(distance > a.radius*a.unit)
	}
	if alongMeridian(p.Latitude, a.center.Latitude) > a.height*a.unit/2 {
		return 0, false
	}
	if Distance(p, Position{a.center.Longitude, p.Latitude}) > a.width*a.unit/2 {
		return 0, false
	}
	return Distance(a.center, p), true
}

// limits are the longitudes and latitudes between which the area lies. They may be beyond the map.
func (a area) limits() (west, east, south, north float64) {
	high, wide := a.unit*a.radius, a.unit*a.radius
	if a.isBox {
		high, wide = a.unit*(a.height/2), a.unit*(a.width/2)
	}
	dLatitude := high / earth / degree
	widest := a.center.Latitude + dLatitude // where the meridians are closest
	if a.center.Latitude < 0 {
		widest = a.center.Latitude - dLatitude
	}
	dLongitude := wide / earth / clib.Cos(radians(widest)) / degree
	return a.center.Longitude - dLongitude, a.center.Longitude + dLongitude, a.center.Latitude - dLatitude, a.center.Latitude + dLatitude
}

// reach is how far from the center the area goes, in meters.
func (a area) reach() float64 {
	if !a.isBox {
		return a.radius * a.unit
	}
	return math.Sqrt(float64(a.width/2*(a.width/2))+float64(a.height/2*(a.height/2))) * a.unit
}

// steps estimates how small cells may be so that one and its neighbours cover an area.
func steps(reach, latitude float64) uint8 {
	const halfMap = 20037726.37
	if reach == 0 {
		return finest
	}
	steps := -1
	for ; reach < halfMap; reach *= 2 {
		steps++
	}
	switch latitude = math.Abs(latitude); { // towards the poles they are narrower
	case latitude > 80:
		steps -= 2
	case latitude > 66:
		steps--
	}
	return uint8(max(1, min(steps, finest)))
}

// around are the cells to look through, in order: that of the center, and its neighbours in the directions.
type around [9]cell

// directions are to the east and to the north.
var directions = [9]struct{ east, north int }{{0, 0}, {0, 1}, {0, -1}, {1, 0}, {-1, 0}, {1, 1}, {-1, 1}, {1, -1}, {-1, -1}}

func (a area) around(steps uint8) (cells around) {
	center := cellOf(a.center, steps, maxLatitude)
	for i, d := range directions {
		cells[i] = center.beside(d.east, d.north)
	}
	return cells
}

// cover are the cells that an area may have a part of.
func (a area) cover() around {
	west, east, south, north := a.limits()
	n := steps(a.reach(), a.center.Latitude)
	cells := a.around(n)
	if n > 1 && !cells.reach(west, east, south, north) {
		n--
		cells = a.around(n)
	}
	if n < 2 {
		return cells
	}
	cellWest, cellEast, cellSouth, cellNorth := cells[0].edges()
	for i, d := range directions {
		if d.north < 0 && cellSouth < south || d.north > 0 && cellNorth > north || d.east < 0 && cellWest < west || d.east > 0 && cellEast > east {
			cells[i] = cell{}
		}
	}
	return cells
}

// reach reports whether the neighbours of the cell in the middle end beyond some limits.
func (cells around) reach(west, east, south, north float64) bool {
	_, _, _, farNorth := cells[1].edges()
	_, _, farSouth, _ := cells[2].edges()
	_, farEast, _, _ := cells[3].edges()
	farWest, _, _, _ := cells[4].edges()
	return !(farNorth < north || farSouth > south || farEast < east || farWest > west)
}
