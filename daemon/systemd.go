package daemon

import (
	"context"
	"log/slog"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"
)

// pingsPerWatchdog is the number of notifications to the watchdog within its interval. A late
// notification, or a slow reply, must not end the process.
const pingsPerWatchdog = 4

// serveSupervised calls serve, and notifies systemd, or another supervisor that set NOTIFY_SOCKET,
// of the state of the proxy. Without that variable it notifies no supervisor. serve calls
// notifyReady with a function that checks whether the proxy answers.
func serveSupervised(ctx context.Context, log *slog.Logger, serve func(notifyReady func(checkAlive func() error)) error) error {
	ended, end := context.WithCancel(context.WithoutCancel(ctx))
	stopped := make(chan struct{})
	close(stopped) // a proxy that never served sends no notification
	err := serve(func(alive func() error) {
		stopped = make(chan struct{})
		s := notifier{log: log, checkAlive: alive}
		go func() {
			defer close(stopped)
			s.run(ctx, ended)
		}()
	})
	end()
	<-stopped
	return err
}

// notifier notifies systemd of the state of a serving proxy.
type notifier struct {
	log          *slog.Logger
	checkAlive   func() error // returns an error if the proxy does not answer
	unresponsive bool         // the last checkAlive returned an error
}

// run notifies systemd that the proxy serves clients. When drainCtx is done, run notifies systemd
// that the proxy is draining. When endCtx is done, run returns.
func (s *notifier) run(drainCtx, endCtx context.Context) {
	s.notify(systemd.SdNotifyReady + "\nSTATUS=serving clients")
	ticks := s.watchdogTicks()
	s.onEachTick(drainCtx, ticks, func() { s.pingIfAlive(drainCtx) })
	s.notify(systemd.SdNotifyStopping + "\nSTATUS=draining")
	// A draining proxy may not answer a health check, so run notifies the watchdog without a check.
	// drain-timeout limits this time.
	s.onEachTick(endCtx, ticks, func() { s.notify(systemd.SdNotifyWatchdog) })
}

// watchdogTicks returns a channel that ticks for the watchdog. Without a watchdog, the channel
// never ticks.
func (s *notifier) watchdogTicks() <-chan time.Time {
	interval, err := systemd.SdWatchdogEnabled(false)
	if err != nil {
		s.log.Warn("systemd's watchdog is not notified", "cause", err)
	}
	return time.Tick(interval / pingsPerWatchdog)
}

// onEachTick calls do at each tick until a context ends.
func (s *notifier) onEachTick(ctx context.Context, ticks <-chan time.Time, do func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
			do()
		}
	}
}

// pingIfAlive notifies the watchdog if the proxy answers a health check on its own port.
func (s *notifier) pingIfAlive(drainCtx context.Context) {
	err := s.checkAlive()
	switch {
	case err == nil && s.unresponsive:
		s.log.Info("the proxy answers its own health check again: systemd's watchdog is notified")
	case err != nil && drainCtx.Err() != nil:
		return // draining: the proxy need not answer
	case err != nil && !s.unresponsive:
		s.log.Warn("the proxy does not answer its own health check, so systemd's watchdog is not notified",
			"cause", err)
	}
	s.unresponsive = err != nil
	if !s.unresponsive {
		s.notify(systemd.SdNotifyWatchdog)
	}
}

// notify sends systemd a state.
func (s *notifier) notify(state string) { notify(s.log, state) }

// notifyReload notifies systemd that a reload starts; done notifies it of the end.
func notifyReload(log *slog.Logger) (done func()) {
	notify(log, systemd.SdNotifyReloading+"\n"+systemd.SdNotifyMonotonicUsec())
	return func() { notify(log, systemd.SdNotifyReady) }
}

// notify sends systemd a state. Without NOTIFY_SOCKET it does nothing.
func notify(log *slog.Logger, state string) {
	if _, err := systemd.SdNotify(false, state); err != nil {
		log.Warn("systemd notification failed", "cause", err)
	}
}
