package spec

// Effect is the effect of a successful command on its connection.
type Effect uint8

// The effects. Each comment names the state that the command changes, or its effect.
const (
	None                 Effect = iota // nothing
	OtherEffect                        // something that the proxy does not distinguish
	SetsProtocol                       // the protocol, and possibly the user
	LogsIn                             // the user
	Resets                             // everything, as for a new connection
	SelectsDB                          // the database
	Begins                             // starts a transaction
	Executes                           // runs the transaction and ends it
	Discards                           // ends the transaction without running it
	Watches                            // starts to watch keys
	Unwatches                          // ends the watch on all keys
	SubscribesChannels                 // adds subscriptions
	SubscribesPatterns                 // adds subscriptions
	SubscribesShards                   // adds subscriptions
	UnsubscribesChannels               // removes subscriptions
	UnsubscribesPatterns               // removes subscriptions
	UnsubscribesShards                 // removes subscriptions
	Monitors                           // starts an endless stream of replies
	Streams                            // starts an endless stream of bytes
	Quits                              // ends the connection at the client's request
	ShutsDown                          // ends the connection together with the server
)
