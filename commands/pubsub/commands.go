package pubsub

import (
	"fmt"
	"slices"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/internal/resp"
	"redlock-proxy/quorum"
)

// Commands returns the commands for messages.
func Commands(hub *Hub) []*command.Command {
	docs := func(summary, since string, args ...command.Argument) command.Docs {
		return command.DocsOf("pubsub", summary, since, args...)
	}
	channel, glob := command.Text("channel"), command.Text("pattern")
	all := []*command.Command{
		command.NewRedisCommand("subscribe", subscribeHandler(Channels),
			docs("Listens for messages published to channels.", "2.0.0", channel)),
		command.NewRedisCommand("psubscribe", subscribeHandler(Patterns),
			docs("Listens for messages published to channels that match one or more patterns.", "2.0.0", glob)),
		command.NewRedisCommand("ssubscribe", subscribeHandler(Shards),
			docs("Listens for messages published to shard channels.", "7.0.0", channel)),
		command.NewRedisCommand("unsubscribe", unsubscribeHandler(Channels),
			docs("Stops listening to messages posted to channels.", "2.0.0", command.Optional(channel))),
		command.NewRedisCommand("punsubscribe", unsubscribeHandler(Patterns),
			docs("Stops listening to messages published to channels that match one or more patterns.",
				"2.0.0", command.Optional(glob))),
		command.NewRedisCommand("sunsubscribe", unsubscribeHandler(Shards),
			docs("Stops listening to messages posted to shard channels.", "7.0.0", command.Optional(channel))),
		command.NewRedisCommand("publish", publishHandler(hub, false),
			docs("Posts a message to a channel.", "2.0.0", channel, command.Text("message"))),
		command.NewRedisCommand("spublish", publishHandler(hub, true),
			docs("Post a message to a shard channel", "7.0.0", channel, command.Text("message"))),
		command.NewRedisCommand("pubsub", pubsubCommand(hub).Run, docs("A container for Pub/Sub commands.", "2.8.0")),
	}
	return all
}

// namePrefixes holds the prefixes of the names of commands and confirmations.
var namePrefixes = [...]string{Channels: "", Patterns: "p", Shards: "s"}

// maxPattern limits the length of a pattern. A compiled pattern takes many times its length, and
// PUBLISH compares its channel with the patterns of all clients.
const maxPattern = 1 << 10

func subscribeHandler(kind Kind) func(command.Call) {
	return func(c command.Call) {
		if kind == Patterns && slices.ContainsFunc(c.Args[1:], func(p []byte) bool { return len(p) > maxPattern }) {
			c.Out.WriteError(fmt.Sprintf("ERR pattern too long: the limit is %d bytes; use a shorter pattern", maxPattern))
			return
		}
		s := c.Client.NewSubscriptions().(*Subscriber)
		if err := s.Listen(c.Ctx); err != nil {
			c.Out.Fail(err)
			return
		}
		c.Client.WriteMessages(c.Out)
		for _, name := range syntax.Strings(c.Args[1:]) {
			s.Add(kind, name)
			confirm(c.Out, namePrefixes[kind]+"subscribe", &name, s.Count(kind))
		}
		c.Out.Protect()
	}
}

func unsubscribeHandler(kind Kind) func(command.Call) {
	return func(c command.Call) {
		c.Client.WriteMessages(c.Out)
		s, _ := c.Client.Subscriptions.(*Subscriber)
		names := syntax.Strings(c.Args[1:])
		if len(names) == 0 {
			names = s.Names(kind)
			slices.Sort(names)
		}
		for _, name := range names {
			s.Remove(kind, name)
			confirm(c.Out, namePrefixes[kind]+"unsubscribe", &name, s.Count(kind))
		}
		if len(names) == 0 {
			confirm(c.Out, namePrefixes[kind]+"unsubscribe", nil, s.Count(kind))
		}
		s.StopIfUnused()
		c.Out.Protect()
	}
}

// confirm confirms the start or the end of a subscription. name is nil if there was no subscription
// to end.
func confirm(out *command.Reply, verb string, name *string, count int) {
	out.Bytes = resp.AppendHeader(out.Bytes, MessageKind(out.Proto), 3)
	out.WriteBulk(verb)
	if name != nil {
		out.WriteBulk(*name)
	} else {
		out.WriteNull()
	}
	out.WriteInt(int64(count))
}

func publishHandler(hub *Hub, shard bool) func(command.Call) {
	return func(c command.Call) {
		m := quorum.Message{Channel: string(c.Args[1]), Payload: string(c.Args[2]), Shard: shard}
		n, err := hub.Publish(c.Ctx, m, &c.Client.LastMessage)
		c.Client.WriteMessages(c.Out) // the client's own message precedes the reply
		if err != nil {
			c.Out.Fail(err)
			return
		}
		c.Out.WriteInt(int64(n))
	}
}
