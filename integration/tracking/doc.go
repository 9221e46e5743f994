// Package tracking holds tests of CLIENT TRACKING on lock keys.
package tracking
