package harness

import (
	"errors"

	"redlock-proxy/internal/process"
)

// Busy is processes that only burn CPU, to take it from others.
type Busy struct{ loops []*process.Process }

// StartBusy starts so many loops, each of which takes a processor if it gets one.
func StartBusy(loops int) (*Busy, error) {
	b := &Busy{}
	for range loops {
		loop, err := process.Start("/bin/sh", []string{"-c", "while :; do :; done"}, nil)
		if err != nil {
			return nil, errors.Join(err, b.Close())
		}
		b.loops = append(b.loops, loop)
	}
	return b, nil
}

// Close ends them. It may be called again.
func (b *Busy) Close() error {
	var errs []error
	for _, loop := range b.loops {
		errs = append(errs, loop.Kill())
	}
	return errors.Join(errs...)
}
