package login

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"redlock-proxy/commands/rights"
	"redlock-proxy/internal/resp"
	"redlock-proxy/proxy/upstream"
)

const (
	// maxQuestionBatch limits how many questions are sent together.
	maxQuestionBatch = 256
	// maxKept limits the bytes of the replies that are remembered for a client. Each reply counts
	// as its own size, that of its question, and answerSize.
	maxKept, answerSize = 16 << 10, 64
)

// Upstream is a client's own connection to the upstream, on which the proxy asks as the client.
type Upstream interface {
	// SendAll sends commands together, and returns their replies. None is empty.
	SendAll(ctx context.Context, commands [][]string) ([][]byte, error)
	// Sever ends the connection.
	Sever()
}

// Rights holds a client's login and rights at the upstream, as far as they are known. It is valid
// for one identity, and until the upstream has answered another probe. While the upstream does not
// answer, its rights cannot change either.
type Rights struct {
	identity, probes uint64
	asked            bool // whether the three following fields are known
	// Refused is the upstream's error for a client that has not logged in.
	Refused string
	// All reports whether the client may do everything.
	All bool
	// User is empty if it is unknown.
	User     string
	refusals map[string]string
	size     int // in bytes, of refusals
}

// Known reports whether the client's user is still known, for this identity and probe.
func (r *Rights) Known(identity, probes uint64) bool {
	return r.asked && r.identity == identity && r.probes == probes
}

// Renew forgets everything unless it is of this identity and probe, and reports whether the
// client's user is known.
func (r *Rights) Renew(identity, probes uint64) (known bool) {
	if r.identity != identity || r.probes != probes {
		*r = Rights{identity: identity, probes: probes}
	}
	return r.asked
}

// GrantAll records that the client is the user of every new connection, and may do everything.
func (r *Rights) GrantAll() { r.asked, r.All, r.User = true, true, DefaultUser }

// Forget drops the refusals of single commands, which can be asked for again.
func (r *Rights) Forget() { r.refusals, r.size = nil, 0 }

// Size returns how many bytes these refusals take.
func (r *Rights) Size() int { return r.size }

// LoadUser asks for the client's user, and whether it may do everything. It asks as the client, on
// its own connection, so that the proxy needs no rights for it.
func (r *Rights) LoadUser(ctx context.Context, up Upstream) error {
	name, err := askOne(ctx, up, "ACL", "WHOAMI")
	switch {
	case err != nil:
		return err
	case name[0] == '$': // the user's name
	case resp.Begins(name, "-NOAUTH"):
		r.asked, r.Refused = true, resp.FirstLine(name)
		return nil
	case resp.Begins(name, "-NOPERM"): // the client has logged in
		r.asked = true
		return nil
	case resp.Begins(name, "-ERR unknown command"):
		return r.askWhoWithoutACL(ctx, up)
	default:
		return errors.New(resp.FirstLine(name))
	}
	r.User = strings.Join(resp.Texts(name), "")
	user, err := askOne(ctx, up, "ACL", "GETUSER", r.User)
	if err != nil {
		return err
	}
	r.asked, r.All = true, upstream.MayAll(user)
	return nil
}

func askOne(ctx context.Context, up Upstream, words ...string) ([]byte, error) {
	answers, err := up.SendAll(ctx, [][]string{words})
	if err != nil {
		return nil, err
	}
	return answers[0], nil
}

// askWhoWithoutACL is LoadUser for an upstream that has no ACL, or hides it.
func (r *Rights) askWhoWithoutACL(ctx context.Context, up Upstream) error {
	answers, err := up.SendAll(ctx, [][]string{{"PING"}, {"INFO", "server"}})
	if err != nil {
		return err
	}
	switch pong := answers[0]; {
	case resp.Begins(pong, "-NOAUTH"):
		r.Refused = resp.FirstLine(pong)
	case pong[0] == '-' && !resp.Begins(pong, "-NOPERM"):
		return errors.New(resp.FirstLine(pong))
	}
	r.asked, r.All = true, r.Refused == "" && upstream.PredatesACL(answers[1])
	return nil
}

// Recall returns the known refusals for some questions, and the indexes of the questions that must
// be asked.
func (r *Rights) Recall(questions [][]string) (texts []string, open []int) {
	texts = make([]string, len(questions))
	for i, q := range questions {
		text, known := r.refusals[rights.QuestionKey(q)]
		switch {
		case r.All, r.Refused != "":
			texts[i] = r.Refused
		case known:
			texts[i] = text
		default:
			open = append(open, i)
		}
	}
	return texts, open
}

// Ask asks the open questions, and remembers the replies. watches: the client watches keys.
func (r *Rights) Ask(
	ctx context.Context, up Upstream, watches bool, questions [][]string, open []int, texts []string,
) error {
	for part := range slices.Chunk(open, maxQuestionBatch) {
		if err := askRights(ctx, up, watches, questions, part, texts); err != nil {
			return err
		}
	}
	for _, i := range open {
		r.remember(questions[i], texts[i])
	}
	return nil
}

func (r *Rights) remember(question []string, text string) {
	key := rights.QuestionKey(question)
	size := len(key) + len(text) + answerSize
	if size > maxKept {
		return
	}
	if r.refusals == nil || r.size+size > maxKept {
		r.refusals, r.size = map[string]string{}, 0
	}
	r.refusals[key] = text
	r.size += size
}

// askRights asks some of the questions within a transaction, which it discards: Redis checks the
// rights to a command before it queues it.
func askRights(
	ctx context.Context, up Upstream, watches bool, questions [][]string, which []int, texts []string,
) error {
	if watches { // a transaction would end the watch
		return askByScript(ctx, up, questions, which, texts)
	}
	begun, err := askOne(ctx, up, "MULTI")
	switch {
	case err != nil:
		return err
	case resp.Begins(begun, "-NOPERM"):
		return askByScript(ctx, up, questions, which, texts)
	case !resp.Begins(begun, "+OK"):
		return errors.New(resp.FirstLine(begun))
	}
	// A WATCH is not allowed in a transaction, and servers differ in whether they refuse it before
	// they check the rights. So it is sent after the transaction, and undone by another one.
	var queued, watched []int
	var before, behind [][]string
	for _, q := range which {
		if words := questions[q]; words[0] == "watch" {
			watched, behind = append(watched, q), append(behind, words)
		} else {
			queued, before = append(queued, q), append(before, words)
		}
	}
	all := append(before, []string{"DISCARD"})
	if len(watched) > 0 {
		all = slices.Concat(all, behind, [][]string{{"MULTI"}, {"DISCARD"}})
	}
	answers, err := up.SendAll(ctx, all)
	if err != nil {
		return err
	}
	for _, end := range [][]byte{answers[len(queued)], answers[len(all)-1]} {
		if !resp.Begins(end, "+OK") {
			up.Sever() // the connection is in a transaction that cannot be left, or watches
			return fmt.Errorf("DISCARD: %s", resp.FirstLine(end))
		}
	}
	return errors.Join(readRefusals(answers, queued, texts), readRefusals(answers[len(queued)+1:], watched, texts))
}

// readRefusals stores in texts the refusals in the replies to the questions with indexes which.
func readRefusals(answers [][]byte, which []int, texts []string) (err error) {
	for i, q := range which {
		if texts[q], err = refusalIn(answers[i]); err != nil {
			return err
		}
	}
	return nil
}

// afterRights holds the beginnings of errors that Redis returns after it has checked the rights.
var afterRights = []string{"-OOM ", "-READONLY ", "-MISCONF ", "-NOREPLICAS "}

// refusalIn returns the refusal in the reply to a command in a transaction, or to a WATCH; empty if
// there is none. It returns an error for any other reply.
func refusalIn(answer []byte) (refusal string, err error) {
	switch {
	case resp.Begins(answer, "+QUEUED"), resp.Begins(answer, "+OK"):
		return "", nil
	case resp.Begins(answer, "-NOPERM"), resp.Begins(answer, "-NOAUTH"):
		return resp.FirstLine(answer), nil
	}
	for _, code := range afterRights {
		if resp.Begins(answer, code) {
			return "", nil
		}
	}
	return "", errors.New(resp.FirstLine(answer))
}

// rightsScript checks the rights of the user that runs it.
const rightsScript = "if redis.acl_check_cmd(unpack(ARGV)) then return 1 end return 0"

// askByScript is askRights by a script, if a transaction cannot be used.
func askByScript(ctx context.Context, up Upstream, questions [][]string, which []int, texts []string) error {
	all := make([][]string, len(which))
	for i, q := range which {
		all[i] = append([]string{"EVAL", rightsScript, "0"}, questions[q]...)
	}
	answers, err := up.SendAll(ctx, all)
	if err != nil {
		return err
	}
	for i, q := range which {
		switch {
		case resp.Begins(answers[i], ":1"):
			texts[q] = ""
		case resp.Begins(answers[i], ":0"):
			texts[q] = fmt.Sprintf("NOPERM this user has no permissions to run the '%s' command, "+
				"or to access one of the keys or channels used as arguments", questions[q][0])
		default:
			return fmt.Errorf("the client may use neither MULTI and DISCARD nor EVAL, "+
				"which the proxy needs to check permissions: %s", resp.FirstLine(answers[i]))
		}
	}
	return nil
}
