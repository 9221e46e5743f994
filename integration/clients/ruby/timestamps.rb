# Locks whose value is the time of their end by the clock of the client. They have no time to live.

# RedisMutex releases what still has its time stamp.
class RedisMutex
  def initialize(redis)
    @redis = redis
    @ends = {}
  end

  def take(key, ms)
    now = Time.now.to_f
    ends = now + Integer(ms) / 1000.0
    granted = @redis.setnx(key, ends) || (over?(@redis.get(key), now) && over?(@redis.getset(key, ends), now))
    @ends[key] = ends if granted
    granted
  end

  def release(key)
    @redis.get(key) == @ends[key].to_s && @redis.del(key) == 1
  end

  private

  def over?(value, now)
    value.to_f <= now
  end
end

# RedisObjects releases what it took, if it took it for long enough.
class RedisObjects
  def initialize(redis)
    @redis = redis
    @ends = {}
  end

  def take(key, ms)
    ends = Time.now.to_f + Integer(ms) / 1000.0
    granted = @redis.setnx(key, ends)
    unless granted
      old = @redis.get(key)
      granted = old && old.to_f < Time.now.to_f && @redis.getset(key, ends).to_f < Time.now.to_f
    end
    @ends[key] = ends if granted
    granted ? true : false
  end

  def release(key)
    ends = @ends.delete(key)
    return "not held" if ends.nil?

    @redis.del(key) if ends > Time.now.to_f
  end
end
