package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// unexpectedReplyError returns an error with the wanted and the actual reply of a command.
func unexpectedReplyError(cmd *redis.Cmd, want string) error {
	return fmt.Errorf("%v: expected %s, got %#v, error %v", cmd.Args(), want, cmd.Val(), cmd.Err())
}

func wantEqual(want any, cmd *redis.Cmd) error {
	if cmd.Err() != nil || cmd.Val() != want {
		return unexpectedReplyError(cmd, fmt.Sprintf("%#v", want))
	}
	return nil
}

func wantBetween(low, high int64, cmd *redis.Cmd) error {
	if got, ok := cmd.Val().(int64); !ok || got <= low || got > high {
		return unexpectedReplyError(cmd, fmt.Sprintf("an integer in (%d..%d]", low, high))
	}
	return nil
}

func wantNil(cmd *redis.Cmd) error {
	if !errors.Is(cmd.Err(), redis.Nil) {
		return unexpectedReplyError(cmd, "nil")
	}
	return nil
}

// wantError returns an error unless the reply is an error with the given text.
func wantError(text string, cmd *redis.Cmd) error {
	var reply redis.Error
	if !errors.As(cmd.Err(), &reply) || reply.Error() != text {
		return unexpectedReplyError(cmd, "error "+text)
	}
	return nil
}

func wantWaited(start time.Time, low, high time.Duration) error {
	if d := time.Since(start); d < low || d > high {
		return fmt.Errorf("expected to wait between %v and %v, waited %v", low, high, d)
	}
	return nil
}
