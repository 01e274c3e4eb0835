-- Waits and works in known functions, and prints for each the wall time that it took by its own clock: NAME NS. A wait that a
-- signal has cut short is printed as "interrupted". For tests/integration/wall.
local ffi = require "ffi"
ffi.cdef [[
typedef struct { long s, ns; } wall_time;
int clock_gettime(int, wall_time *);
int usleep(unsigned);
int poll(void *, unsigned long, int);
int pipe(int *);
long read(int, void *, size_t);
long write(int, const void *, size_t);
]]
local C, t = ffi.C, ffi.new "wall_time"
local function now(clock)
  C.clock_gettime(clock, t)
  return tonumber(t.s) * 1e9 + tonumber(t.ns)
end

local interrupted = 0
local function nap(ms)
  if C.usleep(ms * 1000) ~= 0 then interrupted = interrupted + 1 end
end
local function await(ms)
  if C.poll(nil, 0, ms) ~= 0 then interrupted = interrupted + 1 end
end
local function short_naps(n)            -- compiled: the sleeps are below the interval
  for i = 1, n do
    if C.usleep(400) ~= 0 then interrupted = interrupted + 1 end
  end
end
local function burn(ms)                 -- so much CPU time
  local stop, x = now(2) + ms * 1e6, 0
  while now(2) < stop do
    for i = 1, 20000 do x = x + i % 7 end
  end
  return x
end
local function waiting_worker(ms)
  while true do
    C.usleep(ms * 1000)
    coroutine.yield()
  end
end
local function slow_worker() waiting_worker(30) end
local function fast_worker() waiting_worker(10) end

local function switches()
  for line in io.lines "/proc/self/status" do
    local n = line:match "^voluntary_ctxt_switches:%s*(%d+)"
    if n then return tonumber(n) end
  end
end

local took = {}
local function measure(name, fn, ...)
  local start = now(1)
  fn(...)
  took[name] = (took[name] or 0) + now(1) - start
end

local began = now(1)
for i = 1, 5 do
  measure("nap", nap, 100)
  measure("burn", burn, 100)
  measure("await", await, 60)
  measure("short_naps", short_naps, 200)
end
local slow, fast = coroutine.create(slow_worker), coroutine.create(fast_worker)
for i = 1, 10 do
  measure("slow_worker", coroutine.resume, slow)
  measure("fast_worker", coroutine.resume, fast)
end
collectgarbage "stop"
local before = switches()
nap(400)                                -- woken once, at its end
took.switches = switches() - before
took.nap = took.nap + 400e6
took.all = now(1) - began
took.interrupted = interrupted
for name, ns in pairs(took) do print(name .. " " .. ("%.0f"):format(ns)) end
