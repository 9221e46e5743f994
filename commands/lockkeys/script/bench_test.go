package script

import (
	"testing"

	"redlock-proxy/commands/lockkeys/keyspace"
)

// BenchmarkRun measures frequent scripts, with replies that cost nothing.
func BenchmarkRun(b *testing.B) {
	scheduler := NewScheduler()
	for _, shape := range []struct{ name, body string }{
		{"release", `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`},
		{"extend", `if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('pexpire',KEYS[1],ARGV[2]) else return 0 end`},
		{"several keys", `for i, key in ipairs(KEYS) do if redis.call("exists", key) == 1 then return 0 end end for i, key in ipairs(KEYS) do redis.call("set", key, ARGV[1], "PX", ARGV[2]) end return #KEYS`},
		{"loop of 1000", `local n = 0 for i = 1, 1000 do n = n + i % 7 end return n`},
	} {
		b.Run(shape.name, func(b *testing.B) {
			s, err := compile(shape.body)
			if err != nil {
				b.Fatal(err)
			}
			in := Input{Share: Share{Scheduler: scheduler}, Keys: []string{"lock:a"}, Argv: []string{"token", "10000"},
				Call: func(args []string, _ func(int)) (keyspace.Reply, error) {
					if args[0] == "get" {
						return keyspace.BulkReply("token"), nil
					}
					return keyspace.IntReply(1), nil
				}}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Run(b.Context(), in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		if _, err := compile(`if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`); err != nil {
			b.Fatal(err)
		}
	}
}
