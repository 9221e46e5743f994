package spec

import "redlock-proxy/commands/catalog/keys"

// serverCommands lists the commands for messages, connections and servers.
var serverCommands = []Command{
	// Messages.
	{Name: "psubscribe", Arity: -2, Effect: SubscribesPatterns},
	{Name: "publish", Arity: 3, Properties: Propagates},
	{Name: "pubsub", Arity: -2},
	{Name: "punsubscribe", Arity: -1, Effect: UnsubscribesPatterns},
	{Name: "spublish", Arity: 3, Properties: Propagates},
	{Name: "ssubscribe", Arity: -2, Effect: SubscribesShards},
	{Name: "subscribe", Arity: -2, Effect: SubscribesChannels},
	{Name: "sunsubscribe", Arity: -1, Effect: UnsubscribesShards},
	{Name: "unsubscribe", Arity: -1, Effect: UnsubscribesChannels},

	// Transactions.
	{Name: "discard", Arity: 1, Effect: DiscardsTransaction},
	{Name: "exec", Arity: 1, Effect: ExecutesTransaction},
	{Name: "multi", Arity: 1, Effect: BeginsTransaction},
	{Name: "unwatch", Arity: 1, Effect: UnwatchesKeys},
	{Name: "watch", Arity: -2, Keys: allArgs, Effect: WatchesKeys},

	// Scripts and functions.
	{Name: "eval", Arity: -3, Keys: keysCountedBySecond},
	{Name: "eval_ro", Arity: -3, Keys: keysCountedBySecond},
	{Name: "evalsha", Arity: -3, Keys: keysCountedBySecond},
	{Name: "evalsha_ro", Arity: -3, Keys: keysCountedBySecond},
	{Name: "fcall", Arity: -3, Keys: keysCountedBySecond},
	{Name: "fcall_ro", Arity: -3, Keys: keysCountedBySecond},
	{Name: "function", Arity: -2},
	{Name: "script", Arity: -2},

	// The connection.
	{Name: "auth", Arity: -2, Effect: LogsUserIn},
	{Name: "client", Arity: -2, Effect: OtherEffect},
	{Name: "echo", Arity: 2},
	{Name: "hello", Arity: -1, Effect: SetsProtocol},
	{Name: "ping", Arity: -1},
	{Name: "quit", Arity: -1, Effect: ClosesConnection},
	{Name: "reset", Arity: 1, Effect: ResetsConnection},
	{Name: "select", Arity: 2, Effect: SelectsDB},

	// The server.
	{Name: "acl", Arity: -2},
	{Name: "bgrewriteaof", Arity: 1},
	{Name: "bgsave", Arity: -1},
	{Name: "command", Arity: -1},
	{Name: "config", Arity: -2},
	{Name: "dbsize", Arity: 1},
	{Name: "debug", Arity: -2, Keys: keys.OfSubcommands(
		"object", "listpack", "quicklist", "sdslen", "ziplist", "htstats-key", "digest-value")},
	{Name: "failover", Arity: -1},
	{Name: "flushall", Arity: -1, Properties: Writes},
	{Name: "flushdb", Arity: -1, Properties: Writes},
	{Name: "info", Arity: -1},
	{Name: "lastsave", Arity: 1},
	{Name: "latency", Arity: -2},
	{Name: "lolwut", Arity: -1},
	{Name: "memory", Arity: -2, Keys: keys.OfSubcommands("usage")},
	{Name: "module", Arity: -2},
	{Name: "monitor", Arity: 1, Effect: MonitorsServer},
	{Name: "psync", Arity: -3, Effect: StreamsBytes},
	{Name: "replconf", Arity: -1, Effect: OtherEffect},
	{Name: "replicaof", Arity: 3},
	{Name: "restore-asking", Arity: -4, Keys: firstArg, Properties: Writes},
	{Name: "role", Arity: 1},
	{Name: "save", Arity: 1},
	{Name: "shutdown", Arity: -1, Effect: ShutsDown},
	{Name: "slaveof", Arity: 3},
	{Name: "slowlog", Arity: -2},
	{Name: "swapdb", Arity: 3, Properties: Writes},
	{Name: "sync", Arity: 1, Effect: StreamsBytes},
	{Name: "time", Arity: 1},

	// The cluster.
	{Name: "asking", Arity: 1, Effect: OtherEffect},
	{Name: "cluster", Arity: -2},
	{Name: "readonly", Arity: 1, Effect: OtherEffect},
	{Name: "readwrite", Arity: 1},
}
