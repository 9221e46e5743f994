package spec

// Effect is what a command does to the connection that it is sent on, if it succeeds.
type Effect uint8

// The effects, by what they change.
const (
	None                 Effect = iota // nothing
	Other                              // something that is not told apart here
	SetsProtocol                       // the protocol, and maybe the user
	LogsIn                             // the user
	Resets                             // everything
	SelectsDB                          // the database
	Begins                             // into a transaction
	Executes                           // out of it
	Discards                           // out of it
	Watches                            // keys are watched
	Unwatches                          // none is any more
	SubscribesChannels                 // what is subscribed to
	SubscribesPatterns                 // the same
	SubscribesShards                   // the same
	UnsubscribesChannels               // the same
	UnsubscribesPatterns               // the same
	UnsubscribesShards                 // the same
	Monitors                           // an endless stream of replies
	Streams                            // an endless stream of bytes
	Leaves                             // it ends, as the client wishes
	ShutsDown                          // it ends with the server
)
