// Package geo is what positions on the earth mean to Redis: the scores that stand for them, the distances between them, and which members
// of a sorted set lie in a circle or a box. The numbers are those of a Redis on x86-64, to the last digit: no product is
// fused with a sum.
package geo
