//go:build !linux

package process

import "syscall"

// childAttributes cannot tie a child's life to ours here: a parent that is killed leaves its
// children behind.
func childAttributes() *syscall.SysProcAttr { return nil }
