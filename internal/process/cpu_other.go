//go:build !unix

package process

import (
	"errors"
	"time"
)

// OwnCPU returns an error, because this system does not report the time.
func OwnCPU() (time.Duration, error) { return 0, errors.ErrUnsupported }
