package main

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// goRedis implements client with go-redis.
type goRedis struct{ *redis.Client }

// Do implements client.
func (g goRedis) Do(ctx context.Context, words ...string) (any, error) {
	return convertNull(g.Client.Do(ctx, toArgs(words)...).Result())
}

// Pipeline implements client.
func (g goRedis) Pipeline(ctx context.Context, commands ...[]string) (replies []any, err error) {
	pipe := g.Client.Pipeline()
	for _, words := range commands {
		pipe.Do(ctx, toArgs(words)...)
	}
	results, _ := pipe.Exec(ctx) // each command has its own error
	for _, cmd := range results {
		reply, err := convertNull(cmd.(*redis.Cmd).Result())
		if err != nil {
			return nil, err
		}
		replies = append(replies, reply)
	}
	return replies, nil
}

// Listen implements client. A goroutine requests the first message from the library.
func (g goRedis) Listen(ctx context.Context, channel string, messages chan<- any) error {
	subscription := g.Subscribe(ctx, channel)
	if _, err := subscription.Receive(ctx); err != nil {
		return err
	}
	go func() {
		if message, err := subscription.ReceiveMessage(ctx); err == nil {
			messages <- message.Payload
		}
	}()
	return nil
}

// GetCached implements client. The library has no cache.
func (goRedis) GetCached(context.Context, string) (any, bool, error) { return nil, false, nil }

// convertNull returns a null reply as nil, not as an error.
func convertNull(reply any, err error) (any, error) {
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	return reply, err
}

// toArgs converts words to the library's type of arguments.
func toArgs(words []string) (args []any) {
	for _, word := range words {
		args = append(args, word)
	}
	return args
}
