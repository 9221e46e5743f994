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

// Outlet takes what a program on lock keys publishes, for a client whose last message last points
// to. It is a rights.Outlet.
func (h *Hub) Outlet(last *uint64) rights.Outlet { return outlet{h, last} }

type outlet struct {
	hub  *Hub
	last *uint64
}

// patience is how long messages of a program may take, all together.
const patience = 5 * time.Second

// Prepare takes a program's messages.
func (o outlet) Prepare(_ context.Context, commands [][]string) (rights.Prepared, error) {
	for _, words := range commands {
		if !syntax.IsPublish(syntax.Lower(words[0])) {
			return nil, fmt.Errorf("there is no upstream for '%s'", syntax.Shown(words[0]))
		}
	}
	return prepared{o, commands}, nil
}

// prepared are messages of a program that were not published yet.
type prepared struct {
	outlet
	commands [][]string
}

// Do publishes them, one after the other. The client may have left: others are to hear of what was
// committed.
func (p prepared) Do() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, words := range p.commands {
		m := quorum.Message{Channel: words[1], Payload: words[2], Shard: strings.EqualFold(words[0], "spublish")}
		if _, err := p.hub.Publish(ctx, m, p.last); err != nil {
			return err
		}
	}
	return nil
}

// Drop forgets them.
func (prepared) Drop() {}
