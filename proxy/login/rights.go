package proxy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"redlock-proxy/commands/rights"
	"redlock-proxy/internal/resp"
	"redlock-proxy/proxy/track"
	"redlock-proxy/proxy/upstream"
)

const (
	// inquiryTimeout bounds each answer of the upstream to a question of the proxy's
	// own, while a client waits for it.
	inquiryTimeout = 2 * time.Second
	// maxRemembered is how many answers are remembered for a client, and maxQuestion of how
	// many bytes a question may be for that.
	maxRemembered, maxQuestion = 256, 512
)

// rights are what is known of a client's login at the upstream, and of its rights
// there. They hold for one identity, and until the upstream has answered another probe:
// while it does not answer, nobody can change a right there either.
type clientRights struct {
	identity, probes uint64
	asked            bool   // of the two that follow
	refused          string // the error of a client that is not logged in
	all              bool   // the client may do everything
	user             string // empty where it is not known
	refusals         map[string]string
}

// knowRights gives what is still true of the rights, with who the client is asked for where
// that is not known. The error says that it cannot be known.
func (f *forwarding) knowRights(ctx context.Context, state track.State) (*clientRights, error) {
	r := f.rights
	if probes := f.relay.up.Probes(); r.identity != state.Identity || r.probes != probes {
		*r = clientRights{identity: state.Identity, probes: probes}
	}
	if r.asked {
		return r, nil
	}
	if !state.Renamed && f.relay.up.OpensAll() {
		r.asked, r.all, r.user = true, true, gateUser
		return r, nil
	}
	err := f.inquire(ctx, state, func(ctx context.Context) error { return f.askWho(ctx, r) })
	return r, err
}

// isKnown reports whether it is known, without asking, that the client has logged in.
func (f *forwarding) isKnown(state track.State) bool {
	if f.closed() || f.session.login != nil {
		return !f.closed()
	}
	r := f.rights
	return r.asked && r.refused == "" && r.identity == state.Identity && r.probes == f.relay.up.Probes() ||
		!state.Renamed && f.relay.up.OpensAll()
}

// loggedIn reports whether the client has logged in at the upstream, if that is demanded
// there. What is not known is no.
func (f *forwarding) loggedIn(ctx context.Context, state track.State) bool {
	if f.session.login != nil {
		return !f.closed()
	}
	r, err := f.knowRights(ctx, state)
	return err == nil && r.refused == ""
}

// askWho asks who the client is and whether it may do everything: as the client, on
// its own connection, so that the proxy needs no rights for it.
func (f *forwarding) askWho(ctx context.Context, r *clientRights) error {
	name, err := f.put(ctx, "ACL", "WHOAMI")
	switch {
	case err != nil:
		return err
	case name[0] == '$': // asked on
	case resp.Begins(name, "-NOAUTH"):
		r.asked, r.refused = true, resp.FirstLine(name)
		return nil
	case resp.Begins(name, "-NOPERM"): // is logged in
		r.asked = true
		return nil
	case resp.Begins(name, "-ERR unknown command"):
		return f.askWhoWithoutACL(ctx, r)
	default:
		return errors.New(resp.FirstLine(name))
	}
	r.user = strings.Join(resp.Texts(name), "")
	user, err := f.put(ctx, "ACL", "GETUSER", r.user)
	if err != nil {
		return err
	}
	r.asked, r.all = true, upstream.MayAll(user)
	return nil
}

// askWhoWithoutACL is for an upstream that has no ACL, or hides it.
func (f *forwarding) askWhoWithoutACL(ctx context.Context, r *clientRights) error {
	answers, err := f.putAll(ctx, [][]string{{"PING"}, {"INFO", "server"}})
	if err != nil {
		return err
	}
	switch pong := answers[0]; {
	case resp.Begins(pong, "-NOAUTH"):
		r.refused = resp.FirstLine(pong)
	case pong[0] == '-' && !resp.Begins(pong, "-NOPERM"):
		return errors.New(resp.FirstLine(pong))
	}
	r.asked, r.all = true, r.refused == "" && upstream.PredatesACL(answers[1])
	return nil
}

// mayUse says why a client may not use what needs a login; empty where it may. A client
// that may do everything is told to the table.
func (f *forwarding) mayUse(ctx context.Context, state track.State) string {
	f.client.Upstream, f.client.Unrestricted = f, false
	if f.session.login != nil { // it was looked at before
		f.client.Unrestricted = f.session.mayAll()
		return ""
	}
	r, err := f.knowRights(ctx, state)
	switch {
	case err != nil:
		return "ERR " + (&rights.UnknownError{Cause: err}).Error()
	case r.refused != "":
		return r.refused
	}
	f.client.Unrestricted, f.client.User = r.all, r.user
	return ""
}

// Refusals asks, on the client's own connection, what the client may do there.
func (f *forwarding) Refusals(ctx context.Context, questions [][]string) ([]string, error) {
	state := f.relay.know()
	r, err := f.knowRights(ctx, state)
	if err != nil {
		return nil, &rights.UnknownError{Cause: err}
	}
	texts := make([]string, len(questions))
	var open []int
	for i := range questions {
		texts[i] = r.refused
	}
	if r.all || r.refused != "" {
		return texts, nil
	}
	for i, q := range questions {
		text, known := r.refusals[rights.QuestionKey(q)]
		if texts[i] = text; !known {
			open = append(open, i)
		}
	}
	if len(open) == 0 {
		return texts, nil
	}
	err = f.inquire(ctx, state, func(ctx context.Context) error {
		for part := range chunks(open, maxRemembered) {
			if err := f.askRights(ctx, state, questions, part, texts); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, &rights.UnknownError{Cause: err}
	}
	for _, i := range open {
		r.remember(questions[i], texts[i])
	}
	return texts, nil
}

// chunks are pieces of at most n elements.
func chunks(all []int, n int) func(yield func([]int) bool) {
	return func(yield func([]int) bool) {
		for len(all) > 0 && yield(all[:min(n, len(all))]) {
			all = all[min(n, len(all)):]
		}
	}
}

func (r *clientRights) remember(question []string, text string) {
	key := rights.QuestionKey(question)
	if len(key) > maxQuestion {
		return
	}
	if r.refusals == nil || len(r.refusals) >= maxRemembered {
		r.refusals = map[string]string{}
	}
	r.refusals[key] = text
}

// askRights asks about some of the questions, within a transaction that is given up:
// Redis looks at the rights of a command before it queues it.
func (f *forwarding) askRights(ctx context.Context, state track.State, questions [][]string, which []int, texts []string) error {
	if state.Watching { // which a transaction would end
		return f.askByScript(ctx, questions, which, texts)
	}
	begun, err := f.put(ctx, "MULTI")
	switch {
	case err != nil:
		return err
	case resp.Begins(begun, "-NOPERM"):
		return f.askByScript(ctx, questions, which, texts)
	case !resp.Begins(begun, "+OK"):
		return errors.New(resp.FirstLine(begun))
	}
	// A WATCH has no place in a transaction, and servers differ in whether they say so before they look at the rights: it is sent behind
	// it, and undone by another one.
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
	answers, err := f.putAll(ctx, all)
	if err != nil {
		return err
	}
	for _, end := range [][]byte{answers[len(queued)], answers[len(all)-1]} {
		if !resp.Begins(end, "+OK") {
			f.relay.sever() // it is in a transaction that cannot be left, or watches
			return fmt.Errorf("DISCARD: %s", resp.FirstLine(end))
		}
	}
	return errors.Join(readRefusals(answers, queued, texts), readRefusals(answers[len(queued)+1:], watched, texts))
}

// readRefusals reads the answers to these questions.
func readRefusals(answers [][]byte, which []int, texts []string) (err error) {
	for i, q := range which {
		if texts[q], err = refusalIn(answers[i]); err != nil {
			return err
		}
	}
	return nil
}

// afterRights begin the errors of commands whose rights were found to be there: Redis
// looks at these states later.
var afterRights = []string{"-OOM ", "-READONLY ", "-MISCONF ", "-NOREPLICAS "}

// refusalIn reads the answer to a command in a transaction, or to a WATCH: the refusal, or nothing. The
// error says that the answer tells neither.
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

// rightsScript asks for the rights of whoever runs it.
const rightsScript = "if redis.acl_check_cmd(unpack(ARGV)) then return 1 end return 0"

// askByScript asks where a transaction is not to be had.
func (f *forwarding) askByScript(ctx context.Context, questions [][]string, which []int, texts []string) error {
	all := make([][]string, len(which))
	for i, q := range which {
		all[i] = append([]string{"EVAL", rightsScript, "0"}, questions[q]...)
	}
	answers, err := f.putAll(ctx, all)
	if err != nil {
		return err
	}
	for i, q := range which {
		switch {
		case resp.Begins(answers[i], ":1"):
			texts[q] = ""
		case resp.Begins(answers[i], ":0"):
			texts[q] = fmt.Sprintf("NOPERM this user has no permissions to run the '%s' command, or to access one of the keys or channels used as arguments", questions[q][0])
		default:
			return fmt.Errorf("rights are asked for by MULTI and DISCARD, or by EVAL, which this client may not use now: %s", resp.FirstLine(answers[i]))
		}
	}
	return nil
}
