// Package contents implements the values of lock keys: a text, as for most locks, or a hash, a
// list, a set or a sorted set. It also carries the holders of locks that several clients can hold,
// without reading them. It has no keys, commands or times.
//
// For the quorum each value is one string: [Encode] makes it, [Decode] reads it. Equal values have
// equal strings, because masters and proxies compare only the strings. Most texts encode to
// themselves. A text that begins like a collection gets a mark that says that it is a text.
//
// A list keeps its order, and a hash keeps its fields in insertion order. Sets are sorted (numbers
// first, by value, then other members by bytes), and sorted sets are ordered by score. So a client
// sees the same order from every proxy.
//
// A Go program that uses package quorum directly writes its tokens unencoded. This package reads a
// token that begins with the mark as a collection.
package contents
