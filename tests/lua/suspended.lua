-- Coroutines that wait in yield, in known functions, and prints for each function the time that its coroutines waited there, by
-- the scheduler's own clock: NAME NS. For tests/integration/wall. Arguments: how long it runs in ms, how many coroutines there are
-- of each kind; "abandon": some are collected while they wait.
local ffi = require "ffi"
local luasample = require "luasample"
ffi.cdef [[
typedef struct { long s, ns; } suspended_time;
int clock_gettime(int, suspended_time *);
int poll(void *, unsigned long, int);
]]
local C, t = ffi.C, ffi.new "suspended_time"
local function now()
  C.clock_gettime(1, t)
  return tonumber(t.s) * 1e9 + tonumber(t.ns)
end
local length, each, abandon = tonumber(arg[1] or 2500) * 1e6, tonumber(arg[2] or 4), arg[3] == "abandon"

local took, waiting = {}, {}
local function count(name, ns) took[name] = (took[name] or 0) + ns end

-- What the coroutines do: each waits in one function.
local function wait_reply(ms) local r = coroutine.yield("wait_reply", ms) return r end
local function wait_timer(ms) local r = coroutine.yield("wait_timer", ms) return r end
local function wait_turn(ms) local r = coroutine.yield("wait_turn", ms) return r end
local function replies(ms) while true do wait_reply(ms) end end
local function timers(ms) while true do wait_timer(ms) wait_reply(ms / 4) end end
local function turns(ms) while true do wait_turn(ms) end end

-- The scheduler. A coroutine of wait_turn can run when its time has come, and has to wait for its turn.
local TURN = 60e6
local function step(co, ...)
  local ok, where, ms = coroutine.resume(co, ...)
  assert(ok, where)
  local from = now()
  waiting[#waiting + 1] = { co = co, where = where, from = from, due = from + ms * 1e6 }
end
local function spawn(fn, n, ms)
  for i = 1, n do step(coroutine.create(fn), ms + i) end
end
local function run(job)
  local at = now()
  if job.ready then
    luasample.ready(job.co, false)
    count("ready", at - job.ready)
    at = job.ready
  end
  count(job.where, at - job.from)
  step(job.co)
end
local function schedule(until_ns)
  while now() < until_ns do
    local due, at = {}, now()
    for i = #waiting, 1, -1 do
      local job = waiting[i]
      if job.due <= at and job.where == "wait_turn" and not job.ready then
        luasample.ready(job.co)
        job.ready, job.due = at, at + TURN
      elseif job.due <= at then
        due[#due + 1] = table.remove(waiting, i)
      end
    end
    for _, job in ipairs(due) do run(job) end
    C.poll(nil, 0, 1)
  end
end

local function sleep(ms) while ms > 0 do C.poll(nil, 0, 50) ms = ms - 50 end end
local function forgotten() coroutine.yield("forgotten", 1e9) end

local began = now()
if each > 100 then                      -- many, none of which ever runs again
  spawn(replies, each, 1e9)
  count("made", now() - began)
  local from = now()
  sleep(length / 1e6)
  count("wait_reply", (now() - from) * each)
else
  spawn(replies, each, 150)
  spawn(timers, each, 200)
  spawn(turns, each, 100)
  if abandon then
    collectgarbage "stop"
    for i = 1, 500 do coroutine.resume(coroutine.create(forgotten)) end
    local from = now()
    sleep(500)
    collectgarbage() collectgarbage()
    count("forgotten", (now() - from) * 500)
    collectgarbage "restart"
  end
  schedule(now() + length)
  local at = now()
  for _, job in ipairs(waiting) do
    if job.ready then count("ready", at - job.ready) end
    count(job.where, (job.ready or at) - job.from)
  end
end
took.all = now() - began
for name, ns in pairs(took) do print(name .. " " .. ("%.0f"):format(ns)) end
