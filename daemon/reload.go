package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"redlock-proxy/commands"
	"redlock-proxy/conf"
	"redlock-proxy/internal/certs"
	"redlock-proxy/proxy"
	"redlock-proxy/quorum"
)

// applied is what a proxy runs with now. It is not changed.
type applied struct {
	cfg      conf.Config
	password string // of clients
	clients  int    // max-clients, as far as there is room for them
}

// reloading is for one reload at a time.
type reloading struct {
	mu sync.Mutex
	// reading is held while files are read, which may hang for longer than anybody waits.
	reading sync.Mutex
}

// readingTime bounds the time in which all files must be read: a reload that waits for a file
// system must not keep the proxy from stopping.
const readingTime = 5 * time.Second

var (
	errNoOrigin    = errors.New("this proxy has no configuration to be read again")
	errSlowReading = errors.New("its files could not be read in 5 s")
	errStillReads  = errors.New("its files are still being read for a reload before")
)

// handleHangups has the configuration read again at each hangup until ctx ends.
func (d *daemon) handleHangups(ctx context.Context, hangups <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangups:
			_, _, _ = d.reload("SIGHUP") // what went wrong is logged
		}
	}
}

// reloaded is how the last reload went.
type reloaded struct {
	// at is when the configuration that holds was read, well whether none was refused since.
	at   time.Time
	well bool
}

// reload is reloadNow, and keeps how it went for the metrics.
func (d *daemon) reload(by string) (changed, pending []string, err error) {
	d.reloading.mu.Lock()
	defer d.reloading.mu.Unlock()
	defer notifyReload(d.log)()
	changed, pending, err = d.reloadNow(by)
	last := reloaded{at: time.Now(), well: true}
	if err != nil {
		last = reloaded{at: d.lastReload().at}
	}
	d.reloads.Store(&last)
	return changed, pending, err
}

// lastReload is how the last one went; the start of the proxy counts as one.
func (d *daemon) lastReload() reloaded { return *d.reloads.Load() }

// reloadNow reads the configuration again, and has hold what can change while the proxy runs: all
// of it or, if anything is wrong, nothing: the error says why. Changed and pending say which
// settings hold now, and which after a restart only. by is who wants it, for the log.
func (d *daemon) reloadNow(by string) (changed, pending []string, err error) {
	is := d.applied.Load()
	next, err := d.prepareInTime(is)
	if err != nil {
		d.log.Error("the configuration is not reloaded: nothing is changed", "by", by, "cause", err)
		return nil, nil, err
	}
	protected := d.server.IsProtected()
	if err := d.changeMasters(is, next); err != nil {
		d.log.Error("the configuration is not reloaded: nothing is changed", "by", by, "cause", err)
		return nil, nil, err
	}
	if err := d.apply(is, next); err != nil { // which the checks before should have found
		d.log.Error("the configuration is reloaded in parts: restart the proxy", "by", by, "cause", err)
		return nil, nil, err
	}
	d.logReload(by, next)
	WarnOf(d.log, newWarnings(is.cfg, next.cfg))
	if !protected {
		d.warnProtected()
	}
	d.warnOpen()
	d.warnUntimely()
	return next.changed, next.pending, nil
}

// changingTime is how long a reload may wait until the masters have agreed on others.
const changingTime = 10 * time.Second

// changeMasters has other masters follow, if the configuration names others. Passwords and what
// else differs of those that stay comes with them.
func (d *daemon) changeMasters(is *applied, next prepared) error {
	if next.cfg.SameMasters(is.cfg) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), changingTime)
	defer cancel()
	if err := d.cluster.ChangeMasters(ctx, next.cfg.Masters); err != nil {
		return fmt.Errorf("master: %w", err)
	}
	return nil
}

// followMasters reads the configuration again, because other proxies changed the masters. It is
// called again and again until this proxy has them, too; masters are empty where their addresses
// are not known.
func (d *daemon) followMasters(masters []string) {
	given, err := d.readMasters()
	if err == nil && !given.SameMasters(d.applied.Load().cfg) && (len(masters) == 0 || given.HasMasters(masters)) {
		if _, _, err = d.reload("a change of the masters"); err == nil {
			d.unfollowed = ""
			return
		}
	}
	if err == nil {
		err = errors.New("it names others")
	}
	if text := strings.Join(masters, " ") + err.Error(); text != d.unfollowed {
		d.unfollowed = text
		d.log.Error("the masters were changed, and the configuration does not follow: locks are refused with NOQUORUM until it does", "masters", strings.Join(masters, " "), "cause", err)
	}
}

// readMasters reads the configuration for its masters.
func (d *daemon) readMasters() (conf.Config, error) {
	if d.opts.Read == nil {
		return conf.Config{}, errNoOrigin
	}
	if !d.reloading.reading.TryLock() {
		return conf.Config{}, errStillReads
	}
	defer d.reloading.reading.Unlock()
	return d.opts.Read()
}

// prepared is a configuration that is right in all its parts, and can hold from now on.
type prepared struct {
	cfg              conf.Config
	password         string
	useCertificates  func()
	useUsers         func()
	changed, pending []string
}

// prepareInTime is prepare, or an error where that takes too long.
func (d *daemon) prepareInTime(is *applied) (prepared, error) {
	type result struct {
		next prepared
		err  error
	}
	switch {
	case d.opts.Read == nil:
		return prepared{}, errNoOrigin
	case !d.reloading.reading.TryLock():
		return prepared{}, errStillReads
	}
	done := make(chan result, 1)
	go func() { // ends when the files are read
		next, err := d.prepare(is)
		d.reloading.reading.Unlock() // before the answer, or the next reload may find it held
		done <- result{next, err}
	}()
	select {
	case r := <-done:
		return r.next, r.err
	case <-time.After(readingTime):
		return prepared{}, errSlowReading
	}
}

// prepare reads everything and changes nothing.
func (d *daemon) prepare(is *applied) (prepared, error) {
	given, err := d.opts.Read()
	if err != nil {
		return prepared{}, err
	}
	cfg, changed, pending, err := is.cfg.Reloaded(given)
	if err != nil {
		return prepared{}, err
	}
	next := prepared{cfg: cfg, changed: lines(changed), pending: lines(pending)}
	if next.password, err = cfg.ClientPassword(); err != nil {
		return prepared{}, err
	}
	var renewed []string
	if next.useCertificates, renewed, err = d.certs.Prepare(cfg.CertificateFiles(), time.Now()); err != nil {
		return prepared{}, err
	}
	if d.users != nil {
		other := false
		if next.useUsers, other, err = d.users.Prepare(); err != nil {
			return prepared{}, fmt.Errorf("acl-file: %w", err)
		}
		if other {
			renewed = append(renewed, "acl-file")
		}
	}
	if next.password != is.password {
		renewed = append(renewed, "client-password-file")
	}
	for _, setting := range renewed {
		if !slices.ContainsFunc(changed, func(c conf.Change) bool { return c.Setting == setting }) {
			next.changed = append(next.changed, setting+": what it holds is changed")
		}
	}
	return next, nil
}

func lines(changes []conf.Change) []string {
	all := make([]string, len(changes))
	for i, c := range changes {
		all[i] = c.String()
	}
	return all
}

// apply has a prepared configuration hold. The masters are first: they must know of a longer
// max-ttl before clients may ask for it.
func (d *daemon) apply(is *applied, next prepared) error {
	running := next.cfg
	if running.MaxClients == is.cfg.MaxClients {
		running.MaxClients = is.clients
	} else if err := limitClients(&running, d.log); err != nil { // for some of them there was room at the start
		return err
	}
	err := d.cluster.Apply(quorum.Settings{Masters: running.Masters, MaxTTL: running.MaxTTL})
	if d.upstream != nil {
		err = errors.Join(err, d.upstream.Apply(serverURL(running.Upstream), running.UpstreamTimeout))
	}
	if d.opts.Logs != nil {
		err = errors.Join(err, d.opts.Logs.apply(running))
	}
	next.useCertificates()
	if next.useUsers != nil {
		next.useUsers()
	}
	d.applyToTables(running)
	d.server.Apply(serverSettings(running, next.password, d.certs))
	d.admin.serveProfiles(running.AdminPprof)
	d.applied.Store(&applied{cfg: next.cfg, password: next.password, clients: running.MaxClients})
	return err
}

// tableSettings are those of the commands.
func tableSettings(cfg conf.Config) commands.Settings {
	return commands.Settings{
		MaxTTL: cfg.MaxTTL, RefuseNoTTL: cfg.NoTTL == "refuse", MaxClients: cfg.MaxClients, Audit: cfg.AuditLog,
		MessageMemory: cfg.MaxMessageMemory, ScriptMemory: cfg.MaxInputMemory / 4, // the rest is for what clients have
	}
}

// serverSettings are those of clients' connections.
func serverSettings(cfg conf.Config, password string, certificates *certs.Certificates) proxy.Settings {
	return proxy.Settings{
		ClientPassword: password, TLS: certificates.Listener(), ProtectedMode: cfg.ProtectedMode && cfg.TLSClientCA == "",
		MaxClients: cfg.MaxClients, DrainTimeout: cfg.DrainTimeout, HeldInput: cfg.MaxInputMemory, Unread: cfg.MaxUnreadMemory,
	}
}

// logReload logs what a reload came to.
func (d *daemon) logReload(by string, next prepared) {
	about := []any{"by", by}
	if len(next.changed) > 0 {
		about = append(about, "changed", strings.Join(next.changed, "; "))
	}
	if until := d.certs.Until(); !until.IsZero() {
		about = append(about, "tls_cert_until", until.Format(time.RFC3339))
	}
	if len(next.changed) == 0 {
		d.log.Info("the configuration is reloaded: no setting changed", about...)
	} else {
		d.log.Info("the configuration is reloaded", about...)
	}
	if len(next.pending) > 0 {
		d.log.Warn("settings differ that need a restart", slog.String("by", by), slog.String("settings", strings.Join(next.pending, "; ")))
	}
}

// newWarnings are those of a configuration that the one before did not have.
func newWarnings(before, now conf.Config) []string {
	old := before.Warnings()
	return slices.DeleteFunc(now.Warnings(), func(w string) bool { return slices.Contains(old, w) })
}

// WarnOf logs what is probably not meant.
func WarnOf(log *slog.Logger, warnings []string) {
	for _, warning := range warnings {
		log.Warn(warning)
	}
}

// askItself wants a sign of life from the proxy at an address.
func (d *daemon) askItself(addr string) error {
	_, err := AskHealth(Reachable(addr), d.cfg.Balancers(), certs.Probing(d.applied.Load().cfg.CertificateFiles()))
	return err
}
