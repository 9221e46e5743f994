package harness

import (
	"errors"

	"redlock-proxy/internal/process"
)

// BusyLoops runs processes that only take CPU time from other processes.
type BusyLoops struct{ loops []*process.Process }

// StartBusyLoops starts the given number of endless loops.
func StartBusyLoops(loops int) (*BusyLoops, error) {
	b := &BusyLoops{}
	for range loops {
		loop, err := process.Start("/bin/sh", []string{"-c", "while :; do :; done"}, nil)
		if err != nil {
			return nil, errors.Join(err, b.Close())
		}
		b.loops = append(b.loops, loop)
	}
	return b, nil
}

// Close ends the processes. It may be called again.
func (b *BusyLoops) Close() error {
	var errs []error
	for _, loop := range b.loops {
		errs = append(errs, loop.Kill())
	}
	return errors.Join(errs...)
}
