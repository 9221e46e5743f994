// Package tracking tests CLIENT TRACKING on lock keys.
package tracking
