package daemon

import (
	"context"
	"log/slog"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"
)

// beatsPerWatchdog is how often the watchdog is notified within the time that it waits for. One
// that comes late, or an answer that takes its time, must not end the process.
const beatsPerWatchdog = 4

// supervised serves a proxy, and notifies systemd, or what else set NOTIFY_SOCKET, of its state.
// Without that variable nobody is notified. serve calls ready with what wants a sign of life from
// the proxy.
func supervised(ctx context.Context, log *slog.Logger, serve func(ready func(alive func() error)) error) error {
	ended, end := context.WithCancel(context.WithoutCancel(ctx))
	over := make(chan struct{})
	close(over) // nothing is notified of one that never served
	err := serve(func(alive func() error) {
		over = make(chan struct{})
		s := supervision{log: log, alive: alive}
		go func() {
			defer close(over)
			s.run(ctx, ended)
		}()
	})
	end()
	<-over
	return err
}

// supervision notifies systemd of a proxy that serves.
type supervision struct {
	log   *slog.Logger
	alive func() error // whether clients are served
	sick  bool         // it was not alive when last asked
}

// run notifies that clients are served, until drain that this goes on, then that the proxy
// drains, until ended.
func (s *supervision) run(drain, ended context.Context) {
	s.notify(systemd.SdNotifyReady + "\nSTATUS=serving clients")
	beats := s.beats()
	s.each(drain, beats, func() { s.beat(drain) })
	s.notify(systemd.SdNotifyStopping + "\nSTATUS=draining")
	// New clients are no longer served, but for drain-delay, and the time for the rest is limited
	// by drain-timeout.
	s.each(ended, beats, func() { s.notify(systemd.SdNotifyWatchdog) })
}

// beats is when the watchdog wants a sign of life. Without one that is never.
func (s *supervision) beats() <-chan time.Time {
	patience, err := systemd.SdWatchdogEnabled(false)
	if err != nil {
		s.log.Warn("the watchdog is not notified", "error", err)
	}
	return time.Tick(patience / beatsPerWatchdog)
}

// each does something at each beat until a context ends.
func (s *supervision) each(until context.Context, beats <-chan time.Time, do func()) {
	for {
		select {
		case <-until.Done():
			return
		case <-beats:
			do()
		}
	}
}

// beat notifies the watchdog that the proxy lives, if it does: it asks as a client would.
func (s *supervision) beat(drain context.Context) {
	err := s.alive()
	switch {
	case err == nil && s.sick:
		s.log.Info("the proxy answers itself again, and the watchdog is notified")
	case err != nil && drain.Err() != nil:
		return // nobody is served any more, as it should be
	case err != nil && !s.sick:
		s.log.Warn("the proxy does not answer itself, so the watchdog is not notified", "error", err)
	}
	s.sick = err != nil
	if !s.sick {
		s.notify(systemd.SdNotifyWatchdog)
	}
}

// notify sends systemd a state.
func (s *supervision) notify(state string) { notify(s.log, state) }

// notifyReload notifies systemd that the configuration is being read again, and done that this is
// over.
func notifyReload(log *slog.Logger) (done func()) {
	notify(log, systemd.SdNotifyReloading+"\n"+systemd.SdNotifyMonotonicUsec())
	return func() { notify(log, systemd.SdNotifyReady) }
}

// notify sends systemd a state. Without NOTIFY_SOCKET it does nothing.
func notify(log *slog.Logger, state string) {
	if _, err := systemd.SdNotify(false, state); err != nil {
		log.Warn("systemd notification failed", "error", err)
	}
}
