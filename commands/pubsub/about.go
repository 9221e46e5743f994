package pubsub

import (
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/pubsub/subscribers"
)

// about is PUBSUB: what this proxy's own clients are subscribed to.
func about(hub *subscribers.Hub, c command.Call) {
	switch sub := syntax.Lower(c.Args[1]); sub {
	case "channels", "shardchannels":
		names(hub, kindOf(sub), c)
	case "numsub", "shardnumsub":
		counts(hub, kindOf(sub), c)
	case "numpat":
		if len(c.Args) != 2 {
			c.Out.Error(syntax.WrongArity("pubsub|numpat"))
			return
		}
		c.Out.Int(int64(hub.Total(subscribers.Patterns)))
	case "help":
		help(c)
	default:
		c.Out.Error(syntax.UnknownSubcommand("PUBSUB", c.Args[1]))
	}
}

func kindOf(sub string) subscribers.Kind {
	if sub == "shardchannels" || sub == "shardnumsub" {
		return subscribers.Shards
	}
	return subscribers.Channels
}

func names(hub *subscribers.Hub, kind subscribers.Kind, c command.Call) {
	glob := "*"
	switch len(c.Args) {
	case 2:
	case 3:
		glob = string(c.Args[2])
	default:
		c.Out.Error("ERR unknown subcommand or wrong number of arguments for '" + string(syntax.CString(c.Args[1], 128)) + "'. Try PUBSUB HELP.")
		return
	}
	found, err := hub.Names(kind, glob)
	if err != nil {
		c.Out.Fail(err)
		return
	}
	c.Out.Strings(found)
}

func counts(hub *subscribers.Hub, kind subscribers.Kind, c command.Call) {
	c.Out.Array(2 * len(c.Args[2:]))
	for _, name := range syntax.Strings(c.Args[2:]) {
		c.Out.Bulk(name)
		c.Out.Int(int64(hub.Count(kind, name)))
	}
}

func help(c command.Call) {
	if len(c.Args) != 2 {
		c.Out.Error(syntax.WrongArity("pubsub|help"))
		return
	}
	c.Out.Statuses([]string{
		"PUBSUB <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
		"CHANNELS [<pattern>]", "    Return the currently active channels matching a <pattern> (default: '*').",
		"NUMPAT", "    Return number of subscriptions to patterns.",
		"NUMSUB [<channel> ...]", "    Return the number of subscribers for the specified channels, excluding", "    pattern subscriptions(default: no channels).",
		"SHARDCHANNELS [<pattern>]", "    Return the currently active shard level channels matching a <pattern> (default: '*').",
		"SHARDNUMSUB [<shardchannel> ...]", "    Return the number of subscribers for the specified shard level channel(s)",
		"HELP", "    Prints this help.",
	})
}
