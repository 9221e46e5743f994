package commands

import (
	"cmp"
	"sync/atomic"
	"time"

	"redlock-proxy/commands/lockkeys"
	"redlock-proxy/commands/lockkeys/eval"
)

// Settings are what may change while commands run.
type Settings struct {
	// MaxTTL is the longest TTL that a client may ask for.
	MaxTTL time.Duration
	// RefuseNoTTL has lock keys without a TTL be refused.
	RefuseNoTTL bool
	// MaxClients is the limit on connections, as CONFIG GET shows it.
	MaxClients int
	// MessageMemory is how much may wait of messages for all subscribers of a lock server, in
	// bytes; 0: subscribers.DefaultBacklog.
	MessageMemory int64
	// ScriptMemory is how much is kept of scripts on lock keys, in bytes; 0: eval.DefaultMemory.
	ScriptMemory int64
	// Audit is whether the logger Audit of the Options is used. Without one it never is.
	Audit bool
}

// Apply has all of it hold from now on. What looks at a TTL looks at one version of it; a command
// that is under way may be judged by either. It may be called at any time, by any goroutine.
func (t *Table) Apply(s Settings) {
	t.current.Store(&s)
	t.audit.Switch(s.Audit)
	if t.messages != nil {
		t.messages.SetBacklog(s.MessageMemory)
	}
	t.router.scripts.SetMemory(int(cmp.Or(s.ScriptMemory, eval.DefaultMemory)))
}

// ScriptMemory returns how many bytes are kept of scripts on lock keys.
func (t *Table) ScriptMemory() int64 { return int64(t.router.scripts.Memory()) }

// current are the settings that hold now. They are not changed.
type current struct{ atomic.Pointer[Settings] }

func newCurrent(o Options) *current {
	c := &current{}
	first := o.Settings
	first.Audit = o.Audit != nil
	c.Store(&first)
	return c
}

func (c *current) maxTTL() time.Duration { return c.Load().MaxTTL }

func (c *current) limits() lockkeys.Limits {
	is := c.Load()
	return lockkeys.Limits{MaxTTL: is.MaxTTL, RefuseNoTTL: is.RefuseNoTTL}
}

func (c *current) maxClients() int { return c.Load().MaxClients }
