package commands

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"redlock-proxy/commands/script"
	"redlock-proxy/quorum"
)

// Options are what the commands work with. Locks and MaxTTL must be set, with
// LockKeys also Register.
type Options struct {
	// Locks are the locks.
	Locks Locks
	// Register is what lock keys stand in.
	Register Register
	// Scripts keep the bodies of scripts for all proxies. The default keeps none.
	Scripts Scripts
	// Aside carries out on the upstream what scripts on lock keys do beside them. It
	// is nil where there is none.
	Aside Aside
	// MaxTTL is the longest TTL that a client may ask for.
	MaxTTL time.Duration
	// KeyPrefix stands before each lock's name in its key on the masters.
	KeyPrefix string
	// LockKeys are the glob patterns of the keys on which ordinary commands run on
	// the masters. Without any, they all are the upstream's.
	LockKeys []string
	// RefuseNoTTL has lock keys without a TTL be refused.
	RefuseNoTTL bool
	// Version is the proxy's own version, as INFO shows it.
	Version string
	// MaxClients is the limit on connections, as CONFIG GET shows it.
	MaxClients int
	// Masters tells the state of the masters, for INFO. The default tells nothing.
	Masters func() []quorum.MasterStatus
	// Upstream tells its address and, if it is down, why. It is nil where there is
	// none.
	Upstream func() (name string, err error)
	// Clients counts the connected clients, for INFO. The default is 0.
	Clients func() int
	// Random fills a slice with unpredictable bytes. The default is crypto/rand.
	Random func([]byte)
	// Now is the wall clock. The default is time.Now.
	Now func() time.Time
	// Logger is told of locks without a TTL and of what got lost. The default is
	// silence.
	Logger *slog.Logger
}

// Table holds the commands that the proxy answers itself.
type Table struct {
	opts    Options
	started time.Time
	byName  map[string]*Command
	ordered []*Command
	// initials has, for each length of a name, a bit for each first letter, so that
	// most of what is not in the table need not be looked for.
	initials [longestName + 1]uint32
	lockKeys LockKeys
	// locked are the ordinary commands that run on lock keys, by name.
	locked map[string]*Command
	// lists is set where COMMAND lists these, because there is no upstream that does.
	lists bool
	// scripts are those of the clients, habits what their keys were found to hold.
	scripts *script.Cache
	habits  habits
	tallies tallies
	// pause waits between two tries.
	pause func(ctx context.Context, d time.Duration) error
}

// Command is one of them.
type Command struct {
	// Name is in lower case.
	Name string
	// arity counts the words, the name included; negative: at least so many.
	arity   int
	guarded bool // a login is needed, as for the lock commands
	asks    bool // the answer is made of the upstream's
	run     func(t *Table, ctx context.Context, c *Client, args [][]byte, out *Reply)
	docs    docs
}

// NewTable makes the table of a proxy without an upstream: a lock server that
// also answers what clients send when they connect.
func NewTable(opts Options) *Table {
	t := newTable(opts, lockCommands(), proxyCommands(), serverCommands())
	if t.lockKeys.Any() {
		t.lists = true
		for _, name := range slices.Sorted(maps.Keys(t.locked)) {
			t.ordered = append(t.ordered, t.locked[name])
		}
	}
	return t
}

func newTable(opts Options, groups ...[]Command) *Table {
	if opts.Random == nil {
		opts.Random = func(b []byte) { _, _ = rand.Read(b) } // never fails
	}
	if opts.Masters == nil {
		opts.Masters = func() []quorum.MasterStatus { return nil }
	}
	if opts.Clients == nil {
		opts.Clients = func() int { return 0 }
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Scripts == nil {
		opts.Scripts = noScripts{}
	}
	t := &Table{
		opts: opts, started: time.Now(), byName: map[string]*Command{},
		lockKeys: NewLockKeys(opts.LockKeys...), locked: registerCommands(),
		scripts: script.NewCache(maxScripts, maxScriptBytes), pause: sleep,
	}
	for _, group := range groups {
		for _, c := range group {
			t.ordered = append(t.ordered, &c)
			t.byName[c.Name] = &c
			t.initials[len(c.Name)] |= initial(c.Name[0])
		}
	}
	return t
}

// initial is a letter's bit, the same for both cases.
func initial(letter byte) uint32 { return 1 << (letter & 0x1f) }

// longestName is more than any name in the table has.
const longestName = 32

// Lookup finds a command by its name in any case, or nil.
func (t *Table) Lookup(name []byte) *Command {
	var lower [longestName]byte
	if len(name) == 0 || len(name) > len(lower) || t.initials[len(name)]&initial(name[0]) == 0 {
		return nil
	}
	for i, b := range name {
		if 'A' <= b && b <= 'Z' {
			b += 'a' - 'A'
		}
		lower[i] = b
	}
	return t.byName[string(lower[:len(name)])]
}

// Run answers a command; args holds all its words. Where CLIENT REPLY has
// silenced the client, nothing is written.
func (t *Table) Run(ctx context.Context, cmd *Command, c *Client, args [][]byte, out *Reply) {
	out.begin(c.Proto)
	if fits(cmd.arity, len(args)) {
		cmd.run(t, ctx, c, args, out)
	} else {
		out.Error(wrongArity(cmd.Name))
	}
	c.hush(out)
}

// Unknown answers a command that is not in the table, in Redis' words. args may
// hold only the first words; Redis shows no more than 128 bytes of them.
func (t *Table) Unknown(c *Client, args [][]byte, out *Reply) {
	shown := ""
	for _, arg := range args[1:] {
		if len(shown) >= shownBytes {
			break
		}
		shown += fmt.Sprintf("'%s' ", cString(arg, shownBytes-len(shown)))
	}
	c.Refuse(fmt.Sprintf("ERR unknown command '%s', with args beginning with: %s", cString(args[0], shownBytes), shown), out)
}

// Refuse answers a command with an error that begins with its upper-case code.
func (c *Client) Refuse(text string, out *Reply) {
	out.begin(c.Proto)
	out.Error(text)
	c.hush(out)
}

// shownBytes is how much of a name or of its arguments an error shows.
const shownBytes = 128

// unknownSubcommand is Redis' answer to one that a command does not have.
func unknownSubcommand(command string, sub []byte, out *Reply) {
	out.Error(fmt.Sprintf("ERR unknown subcommand '%s'. Try %s HELP.", cString(sub, shownBytes), command))
}

// fits checks a number of words against an arity: so many, or at least so many
// where it is negative.
func fits(arity, words int) bool {
	if arity < 0 {
		return words >= -arity
	}
	return words == arity
}

// hush takes the reply back if the client asked for silence.
func (c *Client) hush(out *Reply) {
	switch c.silence {
	case replyOff, replySkipping:
		out.takeBack()
	}
	switch c.silence {
	case replySkip:
		c.silence = replySkipping
	case replySkipping:
		c.silence = replyOn
	}
}
