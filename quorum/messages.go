package quorum

import (
	"context"
	"errors"
	"fmt"
	"time"

	"redlock-proxy/internal/resp"
	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/messages"
	"redlock-proxy/quorum/register"
)

// Message is one message of a client; see package messages.
type Message = messages.Message

// Membership is one who gets all messages, until it leaves or is notified that it may miss some.
type Membership = messages.Membership

// NewMessages carries messages over a cluster, before that runs, between proxies with the same
// prefix. deliver takes each message that this process is to get, one after the other. It must not
// wait.
func NewMessages(c *Cluster, prefix string, deliver func(Message)) *Messages {
	c.messages = &Messages{cluster: c, source: messages.NewSource(), channel: messages.Channel + prefix, deliver: deliver}
	return c.messages
}

// Publish publishes a message on the masters, and returns when a majority has taken it; last is the
// number of the one that the same client published before it, which is set. others is how many
// other proxies listen, as far as the masters report. When it returns, this process' own deliver
// has been called.
//
// Errors: *NoQuorumError, or the cause of ctx: then it may be delivered, or not.
func (m *Messages) Publish(ctx context.Context, message Message, last *uint64) (others int, err error) {
	message = m.source.Begin(message, last)
	defer m.source.End(message)
	return on(ctx, m.cluster, func(g *generation) (int, error) { return g.publish(ctx, m.channel, message) })
}

func (g *generation) publish(ctx context.Context, channel string, message Message) (others int, err error) {
	text := message.Encode()
	ops, all := make([]cell.Op, len(g.masters)), make([]publishing, len(g.masters))
	for i := range ops {
		all[i].channel, all[i].text = channel, text
		ops[i] = &all[i]
	}
	r := g.rounds.Send(g.masters, 0, ops, register.Answered, nil)
	if err := r.Wait(ctx); err != nil {
		return 0, err
	}
	replies := r.Replies()
	if !register.Answered(replies) {
		return 0, g.explain(&register.NoQuorum{Replies: replies})
	}
	listener := g.listener()
	for i := range replies {
		if replies[i].State != register.Counted {
			continue
		}
		heard := int(all[i].listeners)
		if listener.Hears(i) {
			heard--
		}
		others = max(others, heard)
	}
	listener.Deliver(message)
	return others, nil
}

// Listen has one get all messages that are published from when it returns on. lost is called, once,
// if it may miss one; it must not wait, nor call the Membership. Whoever came is to leave, also
// then.
//
// Errors: *NoQuorumError where too few masters can be listened to, or the cause of ctx.
func (m *Messages) Listen(ctx context.Context, lost func()) (*Membership, error) {
	until := time.Now().Add(changePatience)
	for {
		g, err := m.cluster.settled(ctx, until)
		if err != nil {
			return nil, m.cluster.named(err)
		}
		member, err := g.listener().Join(ctx, lost)
		switch {
		case err == nil:
			return member, nil
		case errors.Is(err, messages.ErrClosed) && m.cluster.now() != g && time.Now().Before(until):
			continue
		case errors.Is(err, messages.ErrUnheard), errors.Is(err, messages.ErrClosed):
			return nil, m.cluster.named(g.unheard())
		}
		return nil, err
	}
}

// publishing is a PUBLISH at one master. It is never run on a cell.Store.
type publishing struct {
	channel, text string
	// listeners is what the master answered: how many connections get it.
	listeners int64
}

func (p *publishing) Keys() []string                { return []string{p.channel} }
func (p *publishing) Writes() bool                  { return false }
func (p *publishing) Words(bool) []any              { return []any{"PUBLISH", p.channel, p.text} }
func (p *publishing) Apply(*cell.Store) cell.Answer { return cell.Answer{} }

// AppendTo is of cell.Appender.
func (p *publishing) AppendTo(b []byte, _ bool) []byte {
	return resp.AppendWords(b, "PUBLISH", p.channel, p.text)
}

// Decode is of cell.Op.
func (p *publishing) Decode(said any) (cell.Answer, error) {
	n, ok := said.(int64)
	if !ok || n < 0 {
		return cell.Answer{}, fmt.Errorf("unexpected answer %.80v", said)
	}
	p.listeners = n
	return cell.Answer{Did: true}, nil
}
