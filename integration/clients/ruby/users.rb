#!/usr/bin/env ruby
# redis-rb as a user of the proxy's own: users.rb HOST PORT CA USER PASSWORD COMMAND…
#
# Sends each command, whose words stand together in one argument, and prints the reply or the error. CA is a file, or
# empty for no TLS.
require "redis"

host, port, ca, user, password, *lines = ARGV
tls = ca.empty? ? {} : { ssl: true, ssl_params: { ca_file: ca } }
lines.each do |line|
  redis = Redis.new(host: host, port: Integer(port), username: user, password: password, **tls)
  puts redis.call(*line.split)
rescue Redis::BaseError => e
  puts e.message
end
