package main

import (
	"context"
	"time"

	"github.com/redis/rueidis"
)

// rueidisClient implements client with rueidis.
type rueidisClient struct{ rueidis.Client }

// Do implements client.
func (r rueidisClient) Do(ctx context.Context, words ...string) (any, error) {
	return rueidisClientValue(r.Client.Do(ctx, r.B().Arbitrary(words...).Build()))
}

// Pipeline implements client.
func (r rueidisClient) Pipeline(ctx context.Context, commands ...[]string) (replies []any, err error) {
	var completed []rueidis.Completed
	for _, words := range commands {
		completed = append(completed, r.B().Arbitrary(words...).Build())
	}
	for _, result := range r.DoMulti(ctx, completed...) {
		reply, err := rueidisClientValue(result)
		if err != nil {
			return nil, err
		}
		replies = append(replies, reply)
	}
	return replies, nil
}

// Listen implements client, with a dedicated connection.
func (r rueidisClient) Listen(ctx context.Context, channel string, messages chan<- any) error {
	conn, _ := r.Dedicate() // open until the program ends
	conn.SetPubSubHooks(rueidis.PubSubHooks{
		OnMessage: func(message rueidis.PubSubMessage) { messages <- message.Message },
	})
	return conn.Do(ctx, conn.B().Subscribe().Channel(channel).Build()).Error()
}

// GetCached implements client.
func (r rueidisClient) GetCached(ctx context.Context, key string) (any, bool, error) {
	value, err := rueidisClientValue(r.DoCache(ctx, r.B().Get().Key(key).Cache(), time.Minute))
	return value, true, err
}

// rueidisClientValue returns the reply in a result, or nil for a null.
func rueidisClientValue(result rueidis.RedisResult) (any, error) {
	value, err := result.ToAny()
	if rueidis.IsRedisNil(err) {
		return nil, nil
	}
	return value, err
}
