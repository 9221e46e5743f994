package pubsub

import (
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
)

// pubsubCommand returns PUBSUB, which shows the subscriptions of this proxy's own clients.
func pubsubCommand(hub *Hub) command.Subcommands {
	names := func(kind Kind) command.Subcommand {
		return command.Sub(-2, func(c command.Call) { replyNames(hub, kind, c) })
	}
	counts := func(kind Kind) command.Subcommand {
		return command.Sub(-2, func(c command.Call) { replyCounts(hub, kind, c) })
	}
	return command.Subcommands{
		"channels": names(Channels), "shardchannels": names(Shards),
		"numsub": counts(Channels), "shardnumsub": counts(Shards),
		"numpat": command.Sub(2, func(c command.Call) { c.Out.WriteInt(int64(hub.Total(Patterns))) }),
		"help": command.Help(
			"PUBSUB <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
			"CHANNELS [<pattern>]", "    Return the currently active channels matching a <pattern> (default: '*').",
			"NUMPAT", "    Return number of subscriptions to patterns.",
			"NUMSUB [<channel> ...]",
			"    Return the number of subscribers for the specified channels, excluding",
			"    pattern subscriptions(default: no channels).",
			"SHARDCHANNELS [<pattern>]",
			"    Return the currently active shard level channels matching a <pattern> (default: '*').",
			"SHARDNUMSUB [<shardchannel> ...]",
			"    Return the number of subscribers for the specified shard level channel(s)",
			"HELP", "    Prints this help.",
		),
	}
}

func replyNames(hub *Hub, kind Kind, c command.Call) {
	glob := "*"
	switch len(c.Args) {
	case 2:
	case 3:
		glob = string(c.Args[2])
	default:
		c.Out.WriteError("ERR unknown subcommand or wrong number of arguments for '" +
			string(syntax.CString(c.Args[1], 128)) + "'. Try PUBSUB HELP.")
		return
	}
	found, err := hub.Names(kind, glob)
	if err != nil {
		c.Out.Fail(err)
		return
	}
	c.Out.WriteStrings(found)
}

func replyCounts(hub *Hub, kind Kind, c command.Call) {
	c.Out.WriteArray(2 * len(c.Args[2:]))
	for _, name := range syntax.Strings(c.Args[2:]) {
		c.Out.WriteBulk(name)
		c.Out.WriteInt(int64(hub.Count(kind, name)))
	}
}
