//go:build !unix

package netconn

import "syscall"

const hasRawCalls = false

func sysRead(uintptr, []byte) (int, error)  { return 0, syscall.EINVAL }
func sysWrite(uintptr, []byte) (int, error) { return 0, syscall.EINVAL }
