-- C functions of a module, each busy for 50 ms at a time: leaves of their own, also around calls back into Lua.
package.path = arg[0]:match("^(.*/)") .. "?.lua;" .. package.path
package.cpath = arg[3] .. "/?.so;" .. package.cpath
local truth = require "truth"
local truthc = require "truthc"
local now, charge, vary = truth.now, truth.charge, truth.vary

local function callback()
        local x = 0
        for i = 1, vary(3e5) do x = x + i % 7 end
        return x
end
local function in_c(ms)
        local ns = truthc.busy(ms)      -- no tail call, which would take this function's place
        return ns
end
local function around(ms)
        local ns, back = truthc.calls(ms, callback, 10)
        return ns, back
end
local function lua(n)
        local x = 0
        for i = 1, n do x = x + i % 5 end
        return x
end

local busy_line, calls_line = truth.lines(in_c, 1, 1), truth.lines(around, 1, 1)

while truth.more() do
        local t = now()
        local busy = in_c(50)
        local t1 = now()
        local calls, back = around(50)
        local t2 = now()
        lua(vary(1e7))
        local t3 = now()
        charge("leaf truthc.busy", busy)
        charge(busy_line, busy)         -- a C function has no line: its caller's pays
        charge("leaf truthc.calls", calls)
        charge(calls_line, calls)
        charge(truth.total(callback), back)
        charge(truth.total(in_c), t1 - t)
        charge(truth.total(around), t2 - t1)
        charge(truth.total(lua), t3 - t2)
end
truth.done()
