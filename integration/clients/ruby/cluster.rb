# redis-rb's cluster client, which knows only the node HOST PORT: ruby cluster.rb HOST PORT NAME
#
# Prints "ready", then reads lines of JSON, each with a key and the words of a command, and prints each reply as JSON;
# cluster_test.go knows the commands.
require "json"
require "redis"

host, port, = ARGV
client = Redis.new(cluster: ["redis://#{host}:#{port}"], timeout: 10)
$stdout.sync = true
puts "ready"
$stdin.each_line do |line|
  _, *words = JSON.parse(line)
  begin
    reply = client.call(*words)
  rescue Redis::BaseError => e
    reply = { error: e.message }
  end
  puts JSON.generate(reply)
end
