// Package contents is what a lock key holds: a text, as most locks are, or a hash, a list, a set or
// a sorted set. It knows no keys, no commands and no time.
//
// Towards the quorum each of them is one string: [Encode] makes it, [Decode] reads it. Equal
// contents are equal strings, since masters and proxies compare nothing else. A text is itself,
// unless it begins as only a collection may: then it is marked as a text.
//
// A list keeps its order, and a hash that in which its fields came. Sets have an order of their own
// (numbers first, by size, then the rest by bytes), sorted sets that of their scores. So what a
// client sees does not depend on which proxy it asks.
//
// A Go program that uses package quorum by itself writes its tokens as they are. One that begins
// with the mark is read as a collection here.
package contents
