# redis-rb as it connects by default, at the server HOST PORT: ruby connect.rb HOST PORT
#
# Prints a line "NAME RESULT" for each step, after "version VERSION"; connect_test.go knows what they are.
# frozen_string_literal: true

require "redis"

HOST, PORT = ARGV
RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"

def client = Redis.new(host: HOST, port: PORT.to_i)

def step(name)
  said, want = yield
  puts "#{name} #{said == want ? 'yes' : said.inspect}"
rescue Redis::CommandError => e
  puts "#{name} refused: #{e.message}"
end

def life(key)
  one, other = client, client
  said = [one.set(key, "t", nx: true, px: 20_000), other.set(key, "u", nx: true, px: 20_000), other.get(key),
          other.eval(RELEASE, keys: [key], argv: ["u"]), one.eval(RELEASE, keys: [key], argv: ["t"])]
  [said, [true, false, "t", 0, 1]]
end

def messages
  said = []
  listener = client
  listener.subscribe("channel") do |on|
    on.subscribe { |_, count| said << count << client.publish("channel", "hello") }
    on.message { |_, message| said << message and listener.unsubscribe }
  end
  [said, [1, 1, "hello"]]
end

puts "version #{Redis::VERSION}"
step("lock") { life("lock:first") }
step("other") { life("data:first") }
step("pipeline") do
  key = "lock:pipeline"
  said = client.pipelined { |pipe| pipe.set(key, "t", nx: true, px: 20_000) && pipe.get(key) && pipe.ping && pipe.del(key) }
  [said, [true, "t", "PONG", 1]]
end
step("messages") { messages }
step("resp3") { [client.call("HELLO").to_h["proto"], 3] } if Redis::VERSION.to_i >= 5
