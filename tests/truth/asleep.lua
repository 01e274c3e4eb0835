-- Asleep half of the time: only CPU time counts.
package.path = arg[0]:match("^(.*/)") .. "?.lua;" .. package.path
local truth = require "truth"
local now, charge, vary = truth.now, truth.charge, truth.vary

local ffi = require "ffi"
ffi.cdef "int usleep(unsigned us);"

local function before(n)
        local x = 0
        for i = 1, n do x = x + i % 7 end
        return x
end
local function after(n)
        local x = 0
        for i = 1, n do x = x + i % 5 end
        return x
end
local function nap(us) ffi.C.usleep(us) end
jit.off(nap)

while truth.more() do
        local t = now()
        before(vary(700000))
        local t1 = now()
        nap(vary(2500))
        local t2 = now()
        after(vary(300000))
        local t3 = now()
        charge(truth.self(before), t1 - t)
        charge(truth.self(nap), t2 - t1)
        charge("late", t2 - t1)
        charge(truth.self(after), t3 - t2)
end
truth.done()
