//go:build !linux

package process

import "syscall"

// childAttributes returns nil: only Linux can end a child with its parent. On other systems the
// children of a killed parent keep running.
func childAttributes() *syscall.SysProcAttr { return nil }
