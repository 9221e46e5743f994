# Locks of SET and scripts.

# ByHand is the way of Redis' own documentation.
class ByHand
  DELETE = 'if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end'.freeze
  EXPIRE = 'if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("pexpire", KEYS[1], ARGV[2]) else return 0 end'.freeze

  def initialize(redis, name)
    @redis = redis
    @token = "token of #{name}"
  end

  def take(key, ms)
    @redis.set(key, @token, nx: true, px: Integer(ms))
  end

  def release(key)
    @redis.eval(DELETE, keys: [key], argv: [@token])
  end

  def extend(key, ms)
    @redis.eval(EXPIRE, keys: [key], argv: [@token, ms])
  end
end

# RedlockGem takes and extends by one script, told whether it may create the key. It loads all its scripts when one is missing.
class RedlockGem
  LOCK = <<~LUA.freeze
    local free = ARGV[3] == "yes" and redis.call("exists", KEYS[1]) == 0
    if free or redis.call("get", KEYS[1]) == ARGV[1] then
      return redis.call("set", KEYS[1], ARGV[1], "PX", ARGV[2])
    end
  LUA
  UNLOCK = <<~LUA.freeze
    if redis.call("get", KEYS[1]) ~= ARGV[1] then
      return 0
    end
    return redis.call("del", KEYS[1])
  LUA
  LEFT = <<~LUA.freeze
    return { redis.call("get", KEYS[1]), redis.call("pttl", KEYS[1]) }
  LUA

  def initialize(redis, name)
    @redis = redis
    @name = name
    @shas = {}
    @locks = {}
  end

  def take(key, ms)
    value = "#{@name}:#{SecureRandom.uuid}"
    granted = run(LOCK, key, value, ms, "yes")
    @locks[key] = value if granted
    granted
  end

  def extend(key, ms)
    run(LOCK, key, value(key), ms, "no")
  end

  # retake extends a lock or, when it is gone, takes it again.
  def retake(key, ms)
    run(LOCK, key, value(key), ms, "yes")
  end

  def release(key)
    run(UNLOCK, key, value(key))
  end

  # left tells whose the lock is, and whether it lasts longer than so many milliseconds.
  def left(key, least)
    value, ms = run(LEFT, key)
    [value && value.split(":").first, ms > Integer(least)]
  end

  private

  def value(key)
    @locks.fetch(key, "nobody")
  end

  def run(script, key, *arguments)
    tried = false
    begin
      @redis.evalsha(@shas.fetch(script) { Digest::SHA1.hexdigest(script) }, keys: [key], argv: arguments)
    rescue Redis::CommandError => e
      raise if tried || !e.message.start_with?("NOSCRIPT")

      tried = true
      @shas = [LOCK, UNLOCK, LEFT].to_h { |one| [one, @redis.script(:load, one)] }
      retry
    end
  end
end
