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

// Subscription is a subscription to all messages. It ends when the subscriber leaves, or learns
// that messages may be missing.
type Subscription = messages.Subscription

// NewMessages creates the Messages of a cluster that does not run yet. Only proxies with the same
// prefix get each other's messages. The cluster calls deliver with each message for this process,
// one after the other. deliver must not wait.
func NewMessages(c *Cluster, prefix string, deliver func(Message)) *Messages {
	c.messages = &Messages{
		cluster: c, source: messages.NewSource(), channel: messages.Channel + prefix, deliver: deliver,
	}
	return c.messages
}

// Publish publishes a message on the masters, and returns when a majority has accepted it. By then,
// this process has called deliver with the message. lastNumber is the number of the previous
// message of the same client; Publish updates it. otherListeners is the number of other proxies
// that listen, as far as the masters report.
//
// Errors: *NoQuorumError, or the cause of ctx. After an error the message may or may not be
// delivered.
func (m *Messages) Publish(ctx context.Context, message Message, lastNumber *uint64) (otherListeners int, err error) {
	message = m.source.Begin(message, lastNumber)
	defer m.source.End(message)
	return withSet(ctx, m.cluster, func(set *masterSet) (int, error) { return set.publish(ctx, m.channel, message) })
}

func (set *masterSet) publish(ctx context.Context, channel string, message Message) (otherListeners int, err error) {
	text := message.Encode()
	ops, publishOps := make([]cell.Op, len(set.masters)), make([]publishOp, len(set.masters))
	for i := range ops {
		publishOps[i].channel, publishOps[i].text = channel, text
		ops[i] = &publishOps[i]
	}
	r := set.rounds.Send(set.masters, 0, ops, register.HasAnswerQuorum, nil)
	if err := r.Wait(ctx); err != nil {
		return 0, err
	}
	replies := r.Replies()
	if !register.HasAnswerQuorum(replies) {
		return 0, set.translate(&register.NoQuorum{Replies: replies})
	}
	listener := set.listener()
	for i := range replies {
		if replies[i].State != register.Counted {
			continue
		}
		listeners := int(publishOps[i].listeners)
		if listener.IsConnected(i) {
			listeners--
		}
		otherListeners = max(otherListeners, listeners)
	}
	listener.Deliver(message)
	return otherListeners, nil
}

// Listen subscribes to all messages that are published after Listen returns. onLoss runs once if
// the subscriber may miss a message. onLoss must not wait, nor call the Subscription. The
// subscriber must leave the Subscription even after a loss.
//
// Errors: *NoQuorumError if too few masters confirm the subscription in time, or the cause of ctx.
func (m *Messages) Listen(ctx context.Context, onLoss func()) (*Subscription, error) {
	until := time.Now().Add(changeTimeout)
	for {
		set, err := m.cluster.stableSet(ctx, until)
		if err != nil {
			return nil, m.cluster.withChange(err)
		}
		subscription, err := set.listener().Join(ctx, onLoss)
		switch {
		case err == nil:
			return subscription, nil
		case errors.Is(err, messages.ErrClosed) && m.cluster.masterSet() != set && time.Now().Before(until):
			continue
		case errors.Is(err, messages.ErrTooFewMasters), errors.Is(err, messages.ErrClosed):
			return nil, m.cluster.withChange(set.missingSubscriptions())
		}
		return nil, err
	}
}

// publishOp is a PUBLISH at one master. Its method Apply is never called.
type publishOp struct {
	channel, text string
	// listeners is the master's reply: the number of connections that receive the message.
	listeners int64
}

func (p *publishOp) Keys() []string                { return []string{p.channel} }
func (p *publishOp) Writes() bool                  { return false }
func (p *publishOp) Words(bool) []any              { return []any{"PUBLISH", p.channel, p.text} }
func (p *publishOp) Apply(*cell.Store) cell.Answer { return cell.Answer{} }

// AppendTo implements cell.Appender.
func (p *publishOp) AppendTo(b []byte, _ bool) []byte {
	return resp.AppendWords(b, "PUBLISH", p.channel, p.text)
}

// Decode implements cell.Op.
func (p *publishOp) Decode(answer any) (cell.Answer, error) {
	n, ok := answer.(int64)
	if !ok || n < 0 {
		return cell.Answer{}, fmt.Errorf("unexpected reply %.80v", answer)
	}
	p.listeners = n
	return cell.Answer{Applied: true}, nil
}
