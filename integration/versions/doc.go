// Package versions tests the proxy with servers of other releases (scripts/versions): as masters,
// as upstream, and mixed.
package versions
