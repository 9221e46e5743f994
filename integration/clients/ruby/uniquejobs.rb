require "json"

# UniqueJobs is a lock of which so many jobs may have a share. A job notes itself under the lock's name and queues up, moves its place
# to a second list, waiting for one if it is told to, and is written into a hash; a sorted set has the names of all locks. Its scripts
# are given all keys, those that locks share among them, and change what they need of them.
class UniqueJobs
  LISTS = 20_000 # how many ms the lists stay; in the library 1,000 and 5,000, too short for what looks at them on a busy machine
  KEYS_AND_NOTE = <<~LUA.freeze
    local name, queued, primed, locked, info, log, all, ending = unpack(KEYS)
    local job, ms, kind, limit, now, history = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4]), ARGV[5], tonumber(ARGV[6])
    local function note(message)
      if history == 0 then return end
      local entry = cjson.encode({ job = job, message = message, time = now })
      redis.call('ZADD', log, now, entry)
      redis.call('ZREMRANGEBYRANK', log, 0, -history)
      redis.call('PUBLISH', log, entry)
    end
  LUA
  QUEUE = <<~LUA.freeze
    #{KEYS_AND_NOTE}
    local last = redis.call('GET', name)
    if last == job or redis.call('HEXISTS', locked, job) == 1 then
      note('again')
      return job
    end
    if last and (redis.call('HLEN', locked) >= limit or redis.call('LLEN', queued) >= limit) then
      note('behind ' .. last)
      return last
    end
    redis.call('SET', name, job)
    redis.call('LPUSH', queued, job)
    if ms > 0 then
      redis.call('PEXPIRE', name, ms)
      redis.call('PEXPIRE', queued, ms)
    end
    note('queued')
    return job
  LUA
  LOCK = <<~LUA.freeze
    #{KEYS_AND_NOTE}
    local function leave()
      redis.call('LREM', queued, -1, job)
      redis.call('LREM', primed, 1, job)
    end
    if redis.call('HEXISTS', locked, job) == 1 then
      note('again')
      leave()
      return job
    end
    if redis.call('HLEN', locked) >= limit then
      note('full')
      return nil
    end
    if kind == 'until_expired' and ms > 0 then
      redis.call('ZADD', ending, now + ms, name)
    else
      redis.call('ZADD', all, now, name)
    end
    redis.call('HSET', locked, job, now)
    leave()
    if ms > 0 then
      for _, key in ipairs({ name, locked, info }) do redis.call('PEXPIRE', key, ms) end
    end
    redis.call('PEXPIRE', queued, #{LISTS})
    redis.call('PEXPIRE', primed, #{LISTS})
    note('locked')
    return job
  LUA
  UNLOCK = <<~LUA.freeze
    #{KEYS_AND_NOTE}
    local others = redis.call('LLEN', queued) + redis.call('LLEN', primed) + redis.call('HLEN', locked)
    if redis.call('HEXISTS', locked, job) == 0 and others > 0 then
      note('left to ' .. table.concat(redis.call('HKEYS', locked), ','))
      return nil
    end
    redis.call('LREM', queued, -1, job)
    redis.call('LREM', primed, -1, job)
    if kind ~= 'until_expired' then
      redis.call('UNLINK', name, info)
      redis.call('HDEL', locked, job)
    end
    if redis.call('LLEN', primed) == 0 then redis.call('UNLINK', primed) end
    local left = redis.call('HLEN', locked)
    if left == 0 then redis.call('UNLINK', locked) end
    if limit <= 1 and left <= 1 then redis.call('ZREM', all, name) end
    redis.call('LPUSH', queued, 1)
    redis.call('PEXPIRE', queued, #{LISTS})
    note('unlocked')
    return job
  LUA
  DELETE = <<~LUA.freeze
    #{KEYS_AND_NOTE}
    local count = redis.call('ZREM', all, name) + redis.call('UNLINK', name, queued, primed, locked, info)
    note('deleted ' .. count)
    return count
  LUA
  ANYONE = "1".freeze # a place that the last holder left

  # The names begin with prefix. Under shared are the log, and the names of all locks.
  def initialize(redis, name, prefix: "uniquejobs", shared: "uniquejobs", history: 0, old: false)
    @redis = redis
    @job = "job-of-#{name}"
    @prefix = prefix
    @shared = shared
    @history = history
    @old = old # without the commands of Redis 6.2
  end

  def take(key, ms, limit = 1, kind = "until_executed")
    lock(key, ms, limit, kind) { |queued, primed| @old ? @redis.rpoplpush(queued, primed) : @redis.lmove(queued, primed, "RIGHT", "LEFT") }
  end

  # wait takes a lock, and has so many seconds for it.
  def wait(key, ms, seconds, limit = 1)
    lock(key, ms, limit, "until_executed") do |queued, primed|
      if @old
        @redis.brpoplpush(queued, primed, timeout: Integer(seconds))
      else
        @redis.blmove(queued, primed, "RIGHT", "LEFT", timeout: Integer(seconds))
      end
    end
  end

  # prime is what a job has done that dies before it has the lock.
  def prime(key, ms, limit = 1)
    [run(QUEUE, key, ms, "until_executed", limit), @redis.rpoplpush(*keys(key)[1, 2])]
  end

  def release(key, limit = 1, kind = "until_executed")
    held?(key) && run(UNLOCK, key, 0, kind, limit)
  end

  # abandon releases without a look at who holds it.
  def abandon(key)
    run(UNLOCK, key, 0, "until_executed", 1)
  end

  def delete(key)
    run(DELETE, key, 0, "until_executed", 1)
  end

  # reap deletes all locks by commands, as is done with those whose jobs are gone.
  def reap(key)
    *, all, ending = keys(key)
    names = @redis.zrevrange(all, 0, -1)
    replies = @redis.pipelined do |pipeline|
      names.each do |name|
        pipeline.unlink(name, *%w[QUEUED PRIMED LOCKED INFO].map { |part| "#{name}:#{part}" })
        pipeline.zrem(all, name)
        pipeline.zrem(ending, name)
      end
    end
    [names, replies]
  end

  def show(key)
    name, queued, primed, locked, info, log, all, ending = keys(key)
    {
      last: @redis.get(name), queued: @redis.lrange(queued, 0, -1), primed: @redis.lrange(primed, 0, -1), locked: @redis.hkeys(locked),
      info: @redis.exists(info), all: @redis.zrange(all, 0, -1), ending: @redis.zrange(ending, 0, -1),
      log: @redis.zrange(log, 0, -1).map { |entry| JSON.parse(entry).values_at("job", "message") },
    }
  end

  private

  def keys(key)
    name = "#{@prefix}:#{key}"
    [name, *%w[QUEUED PRIMED LOCKED INFO].map { |part| "#{name}:#{part}" },
     *%w[changelog digests expiring_digests].map { |part| "#{@shared}:#{part}" }]
  end

  def held?(key)
    @redis.hexists(keys(key)[3], @job)
  end

  def lock(key, ms, limit, kind)
    return @job if held?(key)
    return unless [@job, ANYONE].include?(run(QUEUE, key, ms, kind, limit))

    _, queued, primed, _, info = keys(key)
    @redis.set(info, JSON.generate(job: @job, limit: limit, type: kind))
    run(LOCK, key, ms, kind, limit) if [@job, ANYONE].include?(yield(queued, primed))
  end

  def run(script, key, ms, kind, limit)
    arguments = { keys: keys(key), argv: [@job, ms, kind, limit, Time.now.to_f, @history] }
    @redis.evalsha(Digest::SHA1.hexdigest(script), **arguments)
  rescue Redis::CommandError => e
    raise unless e.message.start_with?("NOSCRIPT")

    @redis.evalsha(@redis.script(:load, script), **arguments)
  end
end
