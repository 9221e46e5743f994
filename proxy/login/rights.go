package login

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"redlock-proxy/commands/rights"
	"redlock-proxy/internal/resp"
	"redlock-proxy/proxy/upstream"
)

const (
	// maxCheckBatch limits the number of checks in one batch.
	maxCheckBatch = 256
	// maxCachedBytes limits the bytes of the replies that a Rights remembers. Each reply counts as
	// its own size, the size of its check, and answerOverhead.
	maxCachedBytes, answerOverhead = 16 << 10, 64
)

// Upstream asks the upstream on a client's own connection, and so as the client.
type Upstream interface {
	// SendAll sends commands together, and returns their replies. No reply is empty.
	SendAll(ctx context.Context, commands [][]string) ([][]byte, error)
	// Disconnect ends the connection.
	Disconnect()
}

// Rights holds a client's login and rights at the upstream, as far as they are known. They are
// valid for one identity (track.State.UserChanges), and until the upstream has answered another
// probe. An upstream that does not answer cannot have changed the rights.
type Rights struct {
	identity, probes uint64
	db               int  // the client's database
	userKnown        bool // the following fields are valid; an empty User is unknown
	// LoginError is the upstream's error for a client that has not logged in.
	LoginError string
	// HasAllPermissions reports whether the client may do everything.
	HasAllPermissions bool
	// User is the name of the client's user; empty if it is unknown.
	User     string
	refusals map[string]string // keyOf returns the keys
	size     int               // size of refusals in bytes
}

// IsKnown reports whether the client's user is still known, for this identity and probe.
func (r *Rights) IsKnown(identity, probes uint64) bool {
	return r.userKnown && r.identity == identity && r.probes == probes
}

// Refresh drops the rights unless they belong to this identity and probe, and reports whether the
// client's user is known. From then on CachedRefusals and Ask use the client's rights in database
// db.
func (r *Rights) Refresh(identity, probes uint64, db int) (known bool) {
	if r.identity != identity || r.probes != probes {
		*r = Rights{identity: identity, probes: probes}
	}
	r.db = db
	return r.userKnown
}

// GrantAll records that the client is the user of every new connection, and may do everything.
func (r *Rights) GrantAll() { r.userKnown, r.HasAllPermissions, r.User = true, true, DefaultUser }

// DropRefusals drops the refusals of single commands. The proxy can ask for them again.
func (r *Rights) DropRefusals() { r.refusals, r.size = nil, 0 }

// Size returns the size of the remembered refusals in bytes.
func (r *Rights) Size() int { return r.size }

// LoadUser asks for the client's user and the rights of this user. It asks on the client's own
// connection, so that the proxy needs no permission to ask.
func (r *Rights) LoadUser(ctx context.Context, up Upstream) error {
	name, err := askOne(ctx, up, "ACL", "WHOAMI")
	switch {
	case err != nil:
		return err
	case name[0] == '$': // the user's name
	case resp.HasPrefix(name, "-NOAUTH"):
		r.userKnown, r.LoginError = true, resp.FirstLine(name)
		return nil
	case resp.HasPrefix(name, "-NOPERM"): // the client has logged in
		r.userKnown = true
		return nil
	case resp.HasPrefix(name, "-ERR unknown command"):
		return r.loadUserWithoutACL(ctx, up)
	default:
		return errors.New(resp.FirstLine(name))
	}
	r.User = strings.Join(resp.Texts(name), "")
	user, err := askOne(ctx, up, "ACL", "GETUSER", r.User)
	if err != nil {
		return err
	}
	r.userKnown, r.HasAllPermissions = true, upstream.HasAllPermissions(user)
	return nil
}

func askOne(ctx context.Context, up Upstream, words ...string) ([]byte, error) {
	answers, err := up.SendAll(ctx, [][]string{words})
	if err != nil {
		return nil, err
	}
	return answers[0], nil
}

// loadUserWithoutACL implements LoadUser for an upstream that has no ACL, or hides it.
func (r *Rights) loadUserWithoutACL(ctx context.Context, up Upstream) error {
	answers, err := up.SendAll(ctx, [][]string{{"PING"}, {"INFO", "server"}})
	if err != nil {
		return err
	}
	switch pong := answers[0]; {
	case resp.HasPrefix(pong, "-NOAUTH"):
		r.LoginError = resp.FirstLine(pong)
	case pong[0] == '-' && !resp.HasPrefix(pong, "-NOPERM"):
		return errors.New(resp.FirstLine(pong))
	}
	r.userKnown, r.HasAllPermissions = true, r.LoginError == "" && upstream.PredatesACL(answers[1])
	return nil
}

// CachedRefusals returns the remembered refusals for some checks, and the indexes of the
// checks whose reply is unknown. A check is a command whose permission is checked.
func (r *Rights) CachedRefusals(checks [][]string) (texts []string, unknownIndexes []int) {
	texts = make([]string, len(checks))
	for i, q := range checks {
		text, known := r.refusals[r.keyOf(q)]
		switch {
		case r.HasAllPermissions, r.LoginError != "":
			texts[i] = r.LoginError
		case known:
			texts[i] = text
		default:
			unknownIndexes = append(unknownIndexes, i)
		}
	}
	return texts, unknownIndexes
}

// Ask makes the checks with the indexes unknown, stores the refusals in texts, and remembers
// them. watching is set if the client watches keys.
func (r *Rights) Ask(
	ctx context.Context, up Upstream, watching bool, checks [][]string, unknown []int, texts []string,
) error {
	for part := range slices.Chunk(unknown, maxCheckBatch) {
		if err := askRights(ctx, up, watching, checks, part, texts); err != nil {
			return err
		}
	}
	for _, i := range unknown {
		r.cacheRefusal(checks[i], texts[i])
	}
	return nil
}

// keyOf encodes a check in the client's database as a map key. A user of a Valkey may have
// different rights in each database.
func (r *Rights) keyOf(check []string) string {
	return strconv.Itoa(r.db) + " " + rights.MapKey(check)
}

func (r *Rights) cacheRefusal(check []string, text string) {
	key := r.keyOf(check)
	size := len(key) + len(text) + answerOverhead
	if size > maxCachedBytes {
		return
	}
	if r.refusals == nil || r.size+size > maxCachedBytes {
		r.refusals, r.size = map[string]string{}, 0
	}
	r.refusals[key] = text
	r.size += size
}

// askRights makes the checks with these indexes within a transaction, which it discards: Redis
// checks the permission of a command before it queues the command.
func askRights(
	ctx context.Context, up Upstream, watching bool, checks [][]string, indexes []int, texts []string,
) error {
	if watching { // a transaction would end the watch
		return askByScript(ctx, up, checks, indexes, texts)
	}
	multiReply, err := askOne(ctx, up, "MULTI")
	switch {
	case err != nil:
		return err
	case resp.HasPrefix(multiReply, "-NOPERM"):
		return askByScript(ctx, up, checks, indexes, texts)
	case !resp.HasPrefix(multiReply, "+OK"):
		return errors.New(resp.FirstLine(multiReply))
	}
	// A WATCH is not allowed in a transaction, and some servers refuse it before they check the
	// permission. So a WATCH is sent after the transaction, and undone by another transaction.
	var inTx, afterTx []int
	var txCommands, watchCommands [][]string
	for _, q := range indexes {
		if words := checks[q]; words[0] == "watch" {
			afterTx, watchCommands = append(afterTx, q), append(watchCommands, words)
		} else {
			inTx, txCommands = append(inTx, q), append(txCommands, words)
		}
	}
	batch := append(txCommands, []string{"DISCARD"})
	if len(afterTx) > 0 {
		batch = slices.Concat(batch, watchCommands, [][]string{{"MULTI"}, {"DISCARD"}})
	}
	answers, err := up.SendAll(ctx, batch)
	if err != nil {
		return err
	}
	for _, answer := range [][]byte{answers[len(inTx)], answers[len(batch)-1]} {
		if !resp.HasPrefix(answer, "+OK") {
			up.Disconnect() // the connection is in a transaction, or watches keys
			return fmt.Errorf("DISCARD: %s", resp.FirstLine(answer))
		}
	}
	return errors.Join(readRefusals(answers, inTx, texts), readRefusals(answers[len(inTx)+1:], afterTx, texts))
}

// readRefusals stores in texts the refusals in the replies to the checks with these indexes.
func readRefusals(answers [][]byte, indexes []int, texts []string) (err error) {
	for i, q := range indexes {
		if texts[q], err = refusalIn(answers[i]); err != nil {
			return err
		}
	}
	return nil
}

// nonPermissionErrors holds the prefixes of errors that Redis returns after it has checked the
// permission.
var nonPermissionErrors = []string{"-OOM ", "-READONLY ", "-MISCONF ", "-NOREPLICAS "}

// refusalIn returns the refusal in the reply to a command in a transaction, or to a WATCH; empty if
// there is none. It returns an error for any other reply.
func refusalIn(answer []byte) (refusal string, err error) {
	switch {
	case resp.HasPrefix(answer, "+QUEUED"), resp.HasPrefix(answer, "+OK"):
		return "", nil
	case resp.HasPrefix(answer, "-NOPERM"), resp.HasPrefix(answer, "-NOAUTH"):
		return resp.FirstLine(answer), nil
	}
	for _, code := range nonPermissionErrors {
		if resp.HasPrefix(answer, code) {
			return "", nil
		}
	}
	return "", errors.New(resp.FirstLine(answer))
}

// rightsScript checks the rights of the user that runs it.
const rightsScript = "if redis.acl_check_cmd(unpack(ARGV)) then return 1 end return 0"

// askByScript makes the checks by a script, if a transaction cannot be used.
func askByScript(ctx context.Context, up Upstream, checks [][]string, indexes []int, texts []string) error {
	batch := make([][]string, len(indexes))
	for i, q := range indexes {
		batch[i] = append([]string{"EVAL", rightsScript, "0"}, checks[q]...)
	}
	answers, err := up.SendAll(ctx, batch)
	if err != nil {
		return err
	}
	for i, q := range indexes {
		switch {
		case resp.HasPrefix(answers[i], ":1"):
			texts[q] = ""
		case resp.HasPrefix(answers[i], ":0"):
			texts[q] = fmt.Sprintf("NOPERM this user has no permissions to run the '%s' command, "+
				"or to access one of the keys or channels used as arguments", checks[q][0])
		default:
			return fmt.Errorf("the client may use neither MULTI and DISCARD nor EVAL, "+
				"which the proxy needs to check permissions: %s", resp.FirstLine(answers[i]))
		}
	}
	return nil
}
