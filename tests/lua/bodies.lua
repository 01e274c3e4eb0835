-- Coroutines with bodies that have names, 50/30/20: bodies.lua SECONDS. Prints what each took, ns of CPU time; "main"
-- is the code outside of coroutines.
local ffi = require "ffi"
ffi.cdef [[
typedef struct { long sec, nsec; } bodies_timespec;
int clock_gettime(int clock, bodies_timespec *ts);
]]
local ts, took = ffi.new "bodies_timespec", { first = 0, second = 0, main = 0 }
local function now()
        ffi.C.clock_gettime(3, ts)
        return tonumber(ts.sec) * 1e9 + tonumber(ts.nsec)
end
local function work(n)
        local x = 0
        for i = 1, n do x = x + i % 7 end
        return x
end
local function timed(name, n)
        local t = now()
        work(n * (0.5 + math.random()))
        took[name] = took[name] + now() - t
end
local function second()
        while true do
                timed("second", 30000)
                coroutine.yield()
        end
end
local function first()
        local inner = coroutine.wrap(second)
        while true do
                timed("first", 50000)
                inner()
                coroutine.yield()
        end
end
local start, wanted = now(), tonumber(arg[1] or 1) * 1e9
while now() - start < wanted do
        local outer = coroutine.wrap(first)
        for i = 1, 100 do
                outer()
                timed("main", 20000)
        end
end
print(("all %.0f"):format(now() - start))
for name, ns in pairs(took) do print(("%s %.0f"):format(name, ns)) end
