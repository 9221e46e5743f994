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
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/quorum"
)

// appliedConfig is the current configuration of a proxy. It is immutable.
type appliedConfig struct {
	cfg        conf.Config
	password   string // clients log in with it
	maxClients int    // max-clients, or fewer if the limit on open files is too low
}

// reloadMutexes holds the mutexes of reloads.
type reloadMutexes struct {
	// reloadMu prevents concurrent reloads.
	reloadMu sync.Mutex
	// readMu prevents concurrent reads of the files. A read may hang for longer than a
	// reload waits.
	readMu sync.Mutex
}

// readTimeout limits the time to read all files. A reload that waits for a file system must not
// keep the proxy from stopping.
const readTimeout = 5 * time.Second

var (
	errNoConfiguration = errors.New("this proxy has no configuration to reload")
	errReadTimeout     = errors.New("the configuration files could not be read within 5 s")
	errStillReading    = errors.New("an earlier reload is still reading the configuration files")
)

// handleHangups reloads the configuration at each hangup until ctx ends.
func (d *daemon) handleHangups(ctx context.Context, hangups <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangups:
			_, _, _ = d.reload("SIGHUP") // reload logs errors
		}
	}
}

// reloadResult holds the result of the last reload.
type reloadResult struct {
	// at is the time at which the current configuration was read. ok is false if a reload has
	// failed since.
	at time.Time
	ok bool
}

// reload calls reloadNow, and stores the result for the metrics.
func (d *daemon) reload(by string) (changed, pending []string, err error) {
	d.reloadMutexes.reloadMu.Lock()
	defer d.reloadMutexes.reloadMu.Unlock()
	defer notifyReload(d.log)()
	changed, pending, err = d.reloadNow(by)
	last := reloadResult{at: time.Now(), ok: true}
	if err != nil {
		last = reloadResult{at: d.lastReload().at}
	}
	d.lastReloadResult.Store(&last)
	return changed, pending, err
}

// lastReload returns the result of the last reload. The start of the proxy counts as a reload.
func (d *daemon) lastReload() reloadResult { return *d.lastReloadResult.Load() }

// reloadNow reads the configuration again, and applies the settings that can change while the proxy
// runs. After an error it has usually changed no setting. But a change of the masters may continue
// (quorum.ErrUndecided), and after an error of apply, some settings have changed. changed lists the
// settings that have changed, and pending the settings that change at a restart. by names the
// origin of the reload for the log.
func (d *daemon) reloadNow(by string) (changed, pending []string, err error) {
	current := d.currentConfig.Load()
	next, err := readWithTimeout(d, func() (preparedConfig, error) { return d.prepare(current) })
	if err != nil {
		d.logNotReloaded(by, err)
		return nil, nil, err
	}
	protected := d.server.IsProtected()
	if err := d.changeMasters(current, next); err != nil {
		d.logNotReloaded(by, err)
		return nil, nil, err
	}
	// The checks above should have found every error.
	if err := d.apply(current, next); err != nil {
		d.log.Error("the configuration was reloaded only in part; restart the proxy", "by", by, "cause", err)
		return nil, nil, err
	}
	d.logReload(by, next)
	LogWarnings(d.log, newWarnings(current.cfg, next.cfg))
	if !protected {
		d.warnProtectedMode()
	}
	d.warnOpenUsers()
	d.warnCertificateValidity()
	return next.changed, next.pending, nil
}

// logNotReloaded logs that a reload has failed before it applied any setting.
func (d *daemon) logNotReloaded(by string, err error) {
	if errors.Is(err, quorum.ErrUndecided) {
		d.log.Warn("the configuration was not reloaded yet: a change of the masters may continue by itself",
			"by", by, "cause", err)
		return
	}
	d.log.Error("the configuration was not reloaded: nothing was changed", "by", by, "cause", err)
}

// changeTimeout limits how long a reload waits for the masters to agree on a change.
const changeTimeout = 10 * time.Second

// changeMasters changes the masters, if the configuration names different masters. The change
// includes new passwords and parameters of masters that stay.
func (d *daemon) changeMasters(current *appliedConfig, next preparedConfig) error {
	if next.cfg.HasSameMasters(current.cfg) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), changeTimeout)
	defer cancel()
	checkUpstream := func(masterName func(runID, addr string) string) error {
		return d.forEachUpstream(func(up *upstream.Upstream) error { return up.CheckNewMasters(ctx, masterName) })
	}
	if err := d.cluster.ChangeMasters(ctx, next.cfg.Masters, checkUpstream); err != nil {
		return fmt.Errorf("master: %w", err)
	}
	return nil
}

// followMasters reads the configuration again because another proxy has changed the masters. The
// cluster calls it repeatedly until this proxy has the same masters. masters is empty if their
// addresses are unknown.
func (d *daemon) followMasters(masters []string) {
	read, err := readWithTimeout(d, d.opts.Read)
	if err == nil && !read.HasSameMasters(d.currentConfig.Load().cfg) && (len(masters) == 0 || read.HasMasters(masters)) {
		if _, _, err = d.reload("a change of the masters"); err == nil {
			d.lastMastersError = ""
			return
		}
	}
	if err == nil {
		err = errors.New("the configuration names different masters")
	}
	if text := strings.Join(masters, " ") + err.Error(); text != d.lastMastersError {
		d.lastMastersError = text
		d.log.Error("this proxy refuses locks with NOQUORUM: its configuration does not name the present masters; "+
			"correct it and reload",
			"masters", strings.Join(masters, " "), "cause", err)
	}
}

// preparedConfig holds a configuration that has been checked completely, and can be applied.
type preparedConfig struct {
	cfg              conf.Config
	password         string
	useCertificates  func()
	useUsers         func()
	changed, pending []string
}

// readWithTimeout calls read, which reads the configuration and perhaps the files that it names. It
// returns an error if that takes too long, because a file system may hang.
func readWithTimeout[T any](d *daemon, read func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var none T
	switch {
	case d.opts.Read == nil:
		return none, errNoConfiguration
	case !d.reloadMutexes.readMu.TryLock():
		return none, errStillReading
	}
	done := make(chan result, 1)
	go func() { // ends when the files have been read
		value, err := read()
		// Unlock before the result is sent: otherwise the next reload may find the mutex locked.
		d.reloadMutexes.readMu.Unlock()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-time.After(readTimeout):
		return none, errReadTimeout
	}
}

// prepare reads and checks everything. It changes nothing.
func (d *daemon) prepare(current *appliedConfig) (preparedConfig, error) {
	read, err := d.opts.Read()
	if err != nil {
		return preparedConfig{}, err
	}
	cfg, changed, pending, err := current.cfg.MergeReload(read)
	if err != nil {
		return preparedConfig{}, err
	}
	next := preparedConfig{cfg: cfg, changed: changeTexts(changed), pending: changeTexts(pending)}
	if next.password, err = cfg.ClientPassword(); err != nil {
		return preparedConfig{}, err
	}
	var renewedFiles []string
	if next.useCertificates, renewedFiles, err = d.certs.Prepare(cfg.CertificateFiles(), time.Now()); err != nil {
		return preparedConfig{}, err
	}
	if d.users != nil {
		usersChanged := false
		if next.useUsers, usersChanged, err = d.users.Prepare(); err != nil {
			return preparedConfig{}, fmt.Errorf("acl-file: %w", err)
		}
		if usersChanged {
			renewedFiles = append(renewedFiles, "acl-file")
		}
	}
	if next.password != current.password {
		renewedFiles = append(renewedFiles, "client-password-file")
	}
	for _, setting := range renewedFiles {
		if !slices.ContainsFunc(changed, func(c conf.Change) bool { return c.Setting == setting }) {
			next.changed = append(next.changed, setting+": content changed")
		}
	}
	return next, nil
}

func changeTexts(changes []conf.Change) []string {
	all := make([]string, len(changes))
	for i, c := range changes {
		all[i] = c.String()
	}
	return all
}

// apply applies a prepared configuration, the masters first: they must know of a longer max-ttl
// before clients may ask for it.
func (d *daemon) apply(current *appliedConfig, next preparedConfig) error {
	running := next.cfg
	if running.MaxClients == current.cfg.MaxClients {
		running.MaxClients = current.maxClients
	} else if err := limitClients(&running, d.log); err != nil {
		// The limit on open files may be too low.
		return err
	}
	err := d.cluster.Apply(quorum.LiveSettings{Masters: running.Masters, MaxTTL: running.MaxTTL})
	err = errors.Join(err, d.applyToUpstream(running))
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
	d.admin.setLockClasses(running)
	d.currentConfig.Store(&appliedConfig{cfg: next.cfg, password: next.password, maxClients: running.MaxClients})
	return err
}

// tableSettings returns the settings of the commands.
func tableSettings(cfg conf.Config) commands.Settings {
	return commands.Settings{
		MaxTTL: cfg.MaxTTL, RequireTTL: cfg.LocksWithoutTTL == "refuse", MaxClients: cfg.MaxClients, Audit: cfg.AuditLog,
		MessageMemory: cfg.MaxMessageMemory,
		ScriptMemory:  cfg.MaxInputMemory / 4, // the rest is for the input of clients
	}
}

// serverSettings returns the settings of client connections.
func serverSettings(cfg conf.Config, password string, certificates *certs.Certificates) proxy.Settings {
	return proxy.Settings{
		ClientPassword: password, TLS: certificates.ListenerConfig(),
		ProtectedMode: cfg.ProtectedMode && cfg.TLSClientCA == "",
		MaxClients:    cfg.MaxClients, DrainTimeout: cfg.DrainTimeout, MaxInputMemory: cfg.MaxInputMemory,
		MaxUnreadMemory: cfg.MaxUnreadMemory,
	}
}

// logReload logs the result of a successful reload.
func (d *daemon) logReload(by string, next preparedConfig) {
	about := []any{"by", by}
	if len(next.changed) > 0 {
		about = append(about, "changed", strings.Join(next.changed, "; "))
	}
	if until := d.certs.NotAfter(); !until.IsZero() {
		about = append(about, "tls_cert_until", until.Format(time.RFC3339))
	}
	if len(next.changed) == 0 {
		d.log.Info("configuration reloaded: no setting changed", about...)
	} else {
		d.log.Info("configuration reloaded", about...)
	}
	if len(next.pending) > 0 {
		d.log.Warn("changed settings need a restart", slog.String("by", by),
			slog.String("settings", strings.Join(next.pending, "; ")))
	}
}

// newWarnings returns the warnings of a configuration that the previous configuration did not have.
func newWarnings(oldConfig, newConfig conf.Config) []string {
	old := oldConfig.Warnings()
	return slices.DeleteFunc(newConfig.Warnings(), func(w string) bool { return slices.Contains(old, w) })
}

// LogWarnings logs warnings of the configuration.
func LogWarnings(log *slog.Logger, warnings []string) {
	for _, warning := range warnings {
		log.Warn("configuration warning", "warning", warning)
	}
}

// checkOwnHealth connects to the proxy as a client, and returns an error if it does not reply.
func (d *daemon) checkOwnHealth(addr string) error {
	_, err := AskHealth(ConnectAddress(addr), d.cfg.Balancers(), certs.ProbeConfig(d.currentConfig.Load().cfg.CertificateFiles()))
	return err
}
