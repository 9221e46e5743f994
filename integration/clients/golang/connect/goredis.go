package main

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

type goRedis struct{ *redis.Client }

func (g goRedis) Do(ctx context.Context, words ...string) (any, error) {
	return orNil(g.Client.Do(ctx, anys(words)...).Result())
}

func (g goRedis) Pipeline(ctx context.Context, commands ...[]string) (replies []any, err error) {
	pipe := g.Client.Pipeline()
	for _, words := range commands {
		pipe.Do(ctx, anys(words)...)
	}
	all, _ := pipe.Exec(ctx) // each has its own error
	for _, cmd := range all {
		reply, err := orNil(cmd.(*redis.Cmd).Result())
		if err != nil {
			return nil, err
		}
		replies = append(replies, reply)
	}
	return replies, nil
}

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

func (goRedis) Cached(context.Context, string) (any, bool, error) { return nil, false, nil }

func orNil(reply any, err error) (any, error) {
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	return reply, err
}

func anys(words []string) (args []any) {
	for _, word := range words {
		args = append(args, word)
	}
	return args
}
