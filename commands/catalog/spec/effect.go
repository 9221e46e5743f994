package spec

// Effect is the effect of a successful command on the connection on which it is sent.
type Effect uint8

// The effects, by what they change.
const (
	None                 Effect = iota // nothing
	OtherEffect                        // something that the proxy does not distinguish
	SetsProtocol                       // the protocol, and possibly the user
	LogsIn                             // the user
	Resets                             // everything
	SelectsDB                          // the database
	Begins                             // starts a transaction
	Executes                           // ends a transaction
	Discards                           // ends a transaction
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
	Quits                              // the client closes the connection
	ShutsDown                          // the connection closes with the server
)
