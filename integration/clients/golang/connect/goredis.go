package main

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// goRedis is a client of go-redis.
type goRedis struct{ *redis.Client }

// Do implements client.
func (g goRedis) Do(ctx context.Context, words ...string) (any, error) {
	return orNil(g.Client.Do(ctx, anys(words)...).Result())
}

// Pipeline implements client.
func (g goRedis) Pipeline(ctx context.Context, commands ...[]string) (replies []any, err error) {
	pipe := g.Client.Pipeline()
	for _, words := range commands {
		pipe.Do(ctx, anys(words)...)
	}
	all, _ := pipe.Exec(ctx) // each command has its own error
	for _, cmd := range all {
		reply, err := orNil(cmd.(*redis.Cmd).Result())
		if err != nil {
			return nil, err
		}
		replies = append(replies, reply)
	}
	return replies, nil
}

// Listen implements client. A goroutine requests the first message from the library.
func (g goRedis) Listen(ctx context.Context, channel string, heard chan<- any) error {
	subscribed := g.Subscribe(ctx, channel)
	if _, err := subscribed.Receive(ctx); err != nil {
		return err
	}
	go func() {
		if message, err := subscribed.ReceiveMessage(ctx); err == nil {
			heard <- message.Payload
		}
	}()
	return nil
}

// Cached implements client. The library has no cache.
func (goRedis) Cached(context.Context, string) (any, bool, error) { return nil, false, nil }

// orNil returns a null reply as nil, not as an error.
func orNil(reply any, err error) (any, error) {
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	return reply, err
}

// anys converts words to the library's type of arguments.
func anys(words []string) (args []any) {
	for _, word := range words {
		args = append(args, word)
	}
	return args
}
