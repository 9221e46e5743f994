require "json"

# RedisLock keeps the owner and the end of a lock in two keys, and changes them in transactions.
class RedisLock
  def initialize(redis, name)
    @redis = redis
    @name = name
  end

  def take(key, ms)
    @redis.msetnx(owner(key), @name, ends(key), later(ms)) || steal(key, ms)
  end

  def extend(key, ms)
    guarded(key) { |multi| multi.set(ends(key), later(ms)) }
  end

  def release(key)
    guarded(key) { |multi| multi.del(owner(key), ends(key)) }
  end

  private

  def owner(key)
    "lock:owner:#{key}"
  end

  def ends(key)
    "lock:expire:#{key}"
  end

  def later(milliseconds)
    Time.now.to_f + Integer(milliseconds) / 1000.0
  end

  # steal takes a lock whose time is over.
  def steal(key, milliseconds)
    @redis.watch(owner(key), ends(key)) do
      time = @redis.get(ends(key))
      if time && time.to_f < Time.now.to_f
        done = @redis.multi { |multi| multi.mset(owner(key), @name, ends(key), later(milliseconds)) }
        done == ["OK"]
      else
        @redis.unwatch
        false
      end
    end
  end

  # guarded runs a transaction if the lock is its own, which no other may change meanwhile.
  def guarded(key, &block)
    @redis.watch(owner(key)) do
      if @redis.get(owner(key)) == @name
        @redis.multi(&block)
      else
        @redis.unwatch
        false
      end
    end
  end
end

# Suo keeps all holders, with the ends of their times, in one value, and changes it by comparing and setting.
class Suo
  def initialize(redis)
    @redis = redis
    @tokens = {}
  end

  def take(key, ms)
    token = SecureRandom.hex(8)
    granted = change(key) { |holders| [[later(ms), token]] if holders.none? { |ends, _| ends > Time.now.to_f } }
    @tokens[key] = token if granted
    granted
  end

  def extend(key, ms)
    change(key) { |holders| [[later(ms), @tokens[key]]] if mine?(key, holders) }
  end

  def release(key)
    change(key) { |holders| holders.reject { |_, token| token == @tokens[key] } if mine?(key, holders) }
  end

  private

  def later(milliseconds)
    Time.now.to_f + Integer(milliseconds) / 1000.0
  end

  def mine?(key, holders)
    holders.any? { |_, token| token == @tokens[key] }
  end

  # change sets what the block makes of the holders, if it makes anything, and starts over when another was faster.
  def change(key)
    loop do
      done = @redis.watch(key) do
        wanted = yield JSON.parse(@redis.get(key) || "[]")
        if wanted
          @redis.multi { |multi| multi.set(key, JSON.generate(wanted)) }
        else
          @redis.unwatch
          :unchanged
        end
      end
      return false if done == :unchanged
      return true if done
    end
  end
end
