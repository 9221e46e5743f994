package main

import (
	"context"
	"time"

	"github.com/valkey-io/valkey-go"
)

// valkeyClient implements client with valkey-go.
type valkeyClient struct{ valkey.Client }

// Do implements client.
func (r valkeyClient) Do(ctx context.Context, words ...string) (any, error) {
	return valkeyClientValue(r.Client.Do(ctx, r.B().Arbitrary(words...).Build()))
}

// Pipeline implements client.
func (r valkeyClient) Pipeline(ctx context.Context, commands ...[]string) (replies []any, err error) {
	var completed []valkey.Completed
	for _, words := range commands {
		completed = append(completed, r.B().Arbitrary(words...).Build())
	}
	for _, result := range r.DoMulti(ctx, completed...) {
		reply, err := valkeyClientValue(result)
		if err != nil {
			return nil, err
		}
		replies = append(replies, reply)
	}
	return replies, nil
}

// Listen implements client, with a dedicated connection.
func (r valkeyClient) Listen(ctx context.Context, channel string, messages chan<- any) error {
	conn, _ := r.Dedicate() // open until the program ends
	conn.SetPubSubHooks(valkey.PubSubHooks{OnMessage: func(message valkey.PubSubMessage) { messages <- message.Message }})
	return conn.Do(ctx, conn.B().Subscribe().Channel(channel).Build()).Error()
}

// GetCached implements client.
func (r valkeyClient) GetCached(ctx context.Context, key string) (any, bool, error) {
	value, err := valkeyClientValue(r.DoCache(ctx, r.B().Get().Key(key).Cache(), time.Minute))
	return value, true, err
}

// valkeyClientValue returns the reply in a result, or nil for a null.
func valkeyClientValue(result valkey.ValkeyResult) (any, error) {
	value, err := result.ToAny()
	if valkey.IsValkeyNil(err) {
		return nil, nil
	}
	return value, err
}
