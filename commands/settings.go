package commands

import (
	"cmp"
	"sync/atomic"
	"time"

	"redlock-proxy/commands/lockkeys"
	"redlock-proxy/commands/lockkeys/eval"
)

// Settings holds the settings that may change while commands run.
type Settings struct {
	// MaxTTL is the longest TTL that a client may ask for.
	MaxTTL time.Duration
	// RequireTTL makes commands fail that would leave a lock key without a TTL.
	RequireTTL bool
	// MaxClients is the limit on connections, as CONFIG GET shows it.
	MaxClients int
	// MessageMemory limits the messages that wait for all subscribers of a lock server, in bytes. 0
	// means pubsub.DefaultBacklog.
	MessageMemory int64
	// ScriptMemory limits the cached scripts on lock keys, in bytes. 0 means eval.DefaultMemory.
	ScriptMemory int64
	// Audit enables the logger Options.Audit. Without such a logger it has no effect.
	Audit bool
}

// Apply makes the settings effective. A command that is already running may still use the previous
// settings. Any goroutine may call Apply at any time.
func (t *Table) Apply(s Settings) {
	t.settings.Store(&s)
	t.audit.SetEnabled(s.Audit)
	if t.messages != nil {
		t.messages.SetBacklog(s.MessageMemory)
	}
	t.router.scripts.SetMemory(int(cmp.Or(s.ScriptMemory, eval.DefaultMemory)))
}

// ScriptMemory returns the limit on cached scripts on lock keys, in bytes.
func (t *Table) ScriptMemory() int64 { return int64(t.router.scripts.Memory()) }

// currentSettings holds the settings in effect. A stored value is never modified.
type currentSettings struct{ atomic.Pointer[Settings] }

func newCurrentSettings(o Options) *currentSettings {
	c := &currentSettings{}
	initial := o.Settings
	initial.Audit = o.Audit != nil
	c.Store(&initial)
	return c
}

func (c *currentSettings) maxTTL() time.Duration { return c.Load().MaxTTL }

func (c *currentSettings) limits() lockkeys.Limits {
	settings := c.Load()
	return lockkeys.Limits{MaxTTL: settings.MaxTTL, RequireTTL: settings.RequireTTL}
}

func (c *currentSettings) maxClients() int { return c.Load().MaxClients }
