#!/usr/bin/env ruby
# Lock libraries of Ruby, over redis-rb, at the server HOST PORT as client NAME: locks.rb HOST PORT NAME
#
# Reads requests "DIALECT OPERATION KEY ARGUMENT..." line by line, and answers each with one line: what the library gave, or the
# class and the text of what it raised.
require "digest"
require "redis"
require "securerandom"
require_relative "scripts"
require_relative "transactions"
require_relative "timestamps"
require_relative "uniquejobs"

host, port, name = ARGV
redis = Redis.new(host: host, port: Integer(port))
known = {
  "by-hand" => ByHand.new(redis, name),
  "redlock-gem" => RedlockGem.new(redis, name),
  "redis-mutex" => RedisMutex.new(redis),
  "redis-objects" => RedisObjects.new(redis),
  "redis-lock" => RedisLock.new(redis, name),
  "suo" => Suo.new(redis),
  "unique-jobs" => UniqueJobs.new(redis, name, prefix: "{uniquejobs:digests}"),
  "unique-jobs-old" => UniqueJobs.new(redis, name, prefix: "{uniquejobs:digests}", old: true),
  "unique-jobs-ending" => UniqueJobs.new(redis, name, prefix: "{uniquejobs:expiring_digests}"),
  "unique-jobs-log" => UniqueJobs.new(redis, name, prefix: "{uniquejobs}", shared: "{uniquejobs}", history: 12),
  "unique-jobs-logged" => UniqueJobs.new(redis, name, prefix: "{uniquejobs:digests}", history: 12),
  "unique-jobs-plain" => UniqueJobs.new(redis, name),
}

def answer(known, request)
  dialect, operation, key, *arguments = request.split
  known.fetch(dialect).public_send(operation.tr("-", "_"), key, *arguments).inspect
rescue StandardError => e
  "#{e.class}: #{e.message}"
end

$stdout.sync = true
puts "ready"
$stdin.each_line { |request| puts answer(known, request).tr("\n", " ") }
