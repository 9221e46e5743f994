package main

import (
	"context"
	"time"

	"github.com/valkey-io/valkey-go"
)

type valkeyClient struct{ valkey.Client }

func (r valkeyClient) Do(ctx context.Context, words ...string) (any, error) {
	return valkeyClientValue(r.Client.Do(ctx, r.B().Arbitrary(words...).Build()))
}

func (r valkeyClient) Pipeline(ctx context.Context, commands ...[]string) (replies []any, err error) {
	var built []valkey.Completed
	for _, words := range commands {
		built = append(built, r.B().Arbitrary(words...).Build())
	}
	for _, result := range r.DoMulti(ctx, built...) {
		reply, err := valkeyClientValue(result)
		if err != nil {
			return nil, err
		}
		replies = append(replies, reply)
	}
	return replies, nil
}

func (r valkeyClient) Listen(ctx context.Context, channel string, heard chan<- any) error {
	conn, _ := r.Dedicate() // kept until the program ends
	conn.SetPubSubHooks(valkey.PubSubHooks{OnMessage: func(message valkey.PubSubMessage) { heard <- message.Message }})
	return conn.Do(ctx, conn.B().Subscribe().Channel(channel).Build()).Error()
}

func (r valkeyClient) Cached(ctx context.Context, key string) (any, bool, error) {
	value, err := valkeyClientValue(r.DoCache(ctx, r.B().Get().Key(key).Cache(), time.Minute))
	return value, true, err
}

func valkeyClientValue(result valkey.ValkeyResult) (any, error) {
	value, err := result.ToAny()
	if valkey.IsValkeyNil(err) {
		return nil, nil
	}
	return value, err
}
