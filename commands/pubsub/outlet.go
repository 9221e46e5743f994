package pubsub

import (
	"context"
	"fmt"
	"strings"
	"time"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/rights"
	"redlock-proxy/quorum"
)

// NewOutlet returns a rights.Outlet for the messages of a program on lock keys. lastNumber points
// to the number of the client's last message.
func (h *Hub) NewOutlet(lastNumber *uint64) rights.Outlet { return outlet{h, lastNumber} }

type outlet struct {
	hub  *Hub
	last *uint64
}

// publishTimeout limits the time to publish all messages of a program.
const publishTimeout = 5 * time.Second

// Prepare stores the commands. It refuses commands that are not messages.
func (o outlet) Prepare(_ context.Context, commands [][]string) (rights.PreparedCommands, error) {
	for _, words := range commands {
		if !syntax.IsPublish(syntax.Lower(words[0])) {
			return nil, fmt.Errorf("there is no upstream for '%s'", syntax.Excerpt(words[0]))
		}
	}
	return preparedMessages{o, commands}, nil
}

// preparedMessages holds the messages of a program that are not published yet.
type preparedMessages struct {
	outlet
	commands [][]string
}

// Do publishes the messages in order, even if the client has disconnected, because the program is
// already committed.
func (p preparedMessages) Do() error {
	ctx, cancel := context.WithTimeout(context.Background(), publishTimeout)
	defer cancel()
	for _, words := range p.commands {
		m := quorum.Message{Channel: words[1], Payload: words[2], Shard: strings.EqualFold(words[0], "spublish")}
		if _, err := p.hub.Publish(ctx, m, p.last); err != nil {
			return err
		}
	}
	return nil
}

// Drop does nothing, because Prepare has published no message.
func (preparedMessages) Drop() {}
