-- A script for sysbench: sysbench sysbench.lua --threads=4 run. Each thread has a VM of its own and its part of the
-- work, 40, 30, 20 and 10, and says at its end how much CPU time it took.
local ffi = require "ffi"
ffi.cdef [[
typedef struct { long sec, nsec; } thread_timespec;
int clock_gettime(int clock, thread_timespec *ts);
]]
local parts = { [0] = 40, 30, 20, 10 }

local function now()
        local ts = ffi.new "thread_timespec"
        ffi.C.clock_gettime(3, ts)
        return tonumber(ts.sec) * 1e9 + tonumber(ts.nsec)
end

function burn(n)
        local x = 0
        for i = 1, n do x = x + i % 7 end
        return x
end

local done
function event()
        if done then return end         -- all of a thread's work is its first event
        done = true
        for i = 1, parts[sysbench.tid] do burn(4e6) end
        print(("thread %d ns %.0f"):format(sysbench.tid, now()))
end
