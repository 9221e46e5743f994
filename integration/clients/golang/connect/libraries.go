package main

import (
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/valkey-io/valkey-go"
)

// libraries returns the known libraries by name.
func libraries() map[string]library {
	return map[string]library{
		"go-redis": {"github.com/redis/go-redis/v9", func(addr string) (client, error) {
			return goRedis{redis.NewClient(&redis.Options{Addr: addr})}, nil
		}},
		"rueidis": {"github.com/redis/rueidis", func(addr string) (client, error) {
			c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}})
			return rueidisClient{c}, err
		}},
		"valkey-go": {"github.com/valkey-io/valkey-go", func(addr string) (client, error) {
			c, err := valkey.NewClient(valkey.ClientOption{InitAddress: []string{addr}})
			return valkeyClient{c}, err
		}},
	}
}
