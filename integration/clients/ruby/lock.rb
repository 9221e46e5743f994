#!/usr/bin/env ruby
# redis-rb against a running redlock-proxy: lock.rb HOST PORT
#
# Prints "ok NAME" for each check, and stops with exit code 1 at the first that fails.
require "redis"
require "securerandom"

HOST, PORT = ARGV[0], Integer(ARGV[1])
PREFIX = "ruby:#{SecureRandom.hex(4)}:"

def connect(**options)
  Redis.new(host: HOST, port: PORT, **options)
end

def expect(what, wanted, got)
  raise "#{what}: expected #{wanted.inspect}, got #{got.inspect}" unless wanted == got
end

def expect_between(what, low, high, got)
  return if got.is_a?(Numeric) && got > low && got <= high

  raise "#{what}: expected a number in (#{low}..#{high}], got #{got.inspect}"
end

# expect_error compares without the blank at the end, which redis-rb 4 takes away.
def expect_error(wanted, *command)
  got = connect.call(*command)
rescue Redis::CommandError => e
  expect(command.join(" "), wanted.rstrip, e.message.rstrip)
else
  raise "#{command.join(' ')}: expected CommandError #{wanted}, got #{got.inspect}"
end

def seconds
  start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  result = yield
  [result, Process.clock_gettime(Process::CLOCK_MONOTONIC) - start]
end

# fields makes a Hash of RESP3's map and of RESP2's keys and values in a row.
def fields(reply)
  reply.is_a?(Hash) ? reply : Hash[*reply]
end

def check(name)
  yield
  puts "ok #{name}"
rescue StandardError => e
  abort "FAILED #{name}: #{e.class}: #{e.message}"
end

$stdout.sync = true
redis = connect

check("ping") { expect("PING", "PONG", redis.ping) }

life = "#{PREFIX}life"
check("lock") { expect_between("LOCK", 9000, 10_000, redis.call("LOCK", life, "t", "PX", 10_000)) }
check("held") { expect("LOCK by another", nil, redis.call("LOCK", life, "t2", "PX", 10_000)) }
check("unlock-wrong-token") { expect("UNLOCK by another", 0, redis.call("UNLOCK", life, "t2")) }
check("extend") { expect_between("EXTEND", 9000, 10_000, redis.call("EXTEND", life, "t", "PX", 10_000)) }
check("unlock") { expect("UNLOCK", 1, redis.call("UNLOCK", life, "t")) }
check("extend-after-unlock") { expect("EXTEND", nil, redis.call("EXTEND", life, "t", "PX", 10_000)) }

check("made-token") do
  key = "#{PREFIX}made"
  got = fields(redis.call("LOCK", key, "*", "EX", 5))
  expect_between("validity", 4000, 5000, got["validity"])
  expect("32 hexadecimal digits in #{got['token']}", true, got["token"].match?(/\A[0-9a-f]{32}\z/))
  expect("UNLOCK with the token made", 1, redis.call("UNLOCK", key, got["token"]))
end

check("block-runs-out") do
  key = "#{PREFIX}out"
  redis.call("LOCK", key, "t", "PX", 10_000)
  got, waited = seconds { redis.call("LOCK", key, "t2", "PX", 1000, "BLOCK", 200) }
  expect("LOCK BLOCK 200", nil, got)
  expect_between("seconds waited", 0.19, 9, waited)
  redis.call("UNLOCK", key, "t")
end

check("block-served") do
  key = "#{PREFIX}served"
  redis.call("LOCK", key, "t", "PX", 60_000)
  waiter = Thread.new { seconds { connect(timeout: 60).call("LOCK", key, "t2", "PX", 10_000, "BLOCK", 30_000) } }
  sleep 0.3
  expect("UNLOCK by the holder", 1, redis.call("UNLOCK", key, "t"))
  got, waited = waiter.value
  expect_between("validity after waiting", 9000, 10_000, got)
  expect_between("seconds waited", 0.2, 25, waited)
  expect("UNLOCK by the waiter", 1, redis.call("UNLOCK", key, "t2"))
end

check("error-expire") { expect_error("ERR invalid expire time in 'lock' command", "LOCK", "k", "t", "PX", 0) }
check("error-arity") { expect_error("ERR wrong number of arguments for 'lock' command: LOCK key token PX milliseconds|EX seconds [SHARED|SLOTS slots] [KEEPALIVE [MAXHOLD milliseconds]] [BLOCK milliseconds] [FENCE] [AT]", "LOCK", "k", "t") }
check("error-unknown") do
  expect_error("ERR unknown command 'FOO', with args beginning with: 'a' 'b' ", "FOO", "a", "b")
end

# The same key in two databases is two locks.
check("select") do
  bases = [connect, connect(db: 1)]
  key = "#{PREFIX}db"
  bases.each_with_index do |base, n|
    expect_between("LOCK in database #{n}", 9000, 10_000, base.call("LOCK", key, "t#{n}", "PX", 10_000))
  end
  bases.each_with_index { |base, n| expect("UNLOCK in database #{n}", 1, base.call("UNLOCK", key, "t#{n}")) }
end

check("pipeline") do
  key = "#{PREFIX}pipe"
  validity, *rest = redis.pipelined do |pipe|
    pipe.call("LOCK", key, "t", "PX", 10_000)
    pipe.call("UNLOCK", key, "t")
    pipe.ping
  end
  expect_between("LOCK", 9000, 10_000, validity)
  expect("UNLOCK, PING", [1, "PONG"], rest)
end

check("name") do
  redis.call("CLIENT", "SETNAME", "worker-7")
  expect("CLIENT GETNAME", "worker-7", redis.call("CLIENT", "GETNAME"))
end
