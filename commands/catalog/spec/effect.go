package spec

// Effect is the effect of a successful command on its connection.
type Effect uint8

// The effects. Each comment names the state that the command changes, or its effect.
const (
	NoEffect             Effect = iota // nothing
	OtherEffect                        // something that the proxy does not distinguish
	SetsProtocol                       // the protocol, and possibly the user
	LogsUserIn                         // the user
	ResetsConnection                   // everything, as for a new connection
	SelectsDB                          // the database
	BeginsTransaction                  // starts a transaction
	ExecutesTransaction                // runs the transaction and ends it
	DiscardsTransaction                // ends the transaction without running it
	WatchesKeys                        // starts to watch keys
	UnwatchesKeys                      // ends the watch on all keys
	SubscribesChannels                 // adds subscriptions
	SubscribesPatterns                 // adds subscriptions
	SubscribesShards                   // adds subscriptions
	UnsubscribesChannels               // removes subscriptions
	UnsubscribesPatterns               // removes subscriptions
	UnsubscribesShards                 // removes subscriptions
	MonitorsServer                     // starts an endless stream of replies
	StreamsBytes                       // starts an endless stream of bytes
	ClosesConnection                   // ends the connection at the client's request
	ShutsDown                          // ends the connection together with the server
)
