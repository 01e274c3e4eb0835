-- C functions that are called through the FFI, by the interpreter or by compiled code: leaves of their own. Two in one loop,
-- one that a variable of the loop holds, and what the callers do themselves.
package.path = arg[0]:match("^(.*/)") .. "?.lua;" .. package.path
local ffi = require "ffi"
local truth = require "truth"
local now, charge, vary = truth.now, truth.charge, truth.vary

ffi.cdef "double truthc_one(double ms); double truthc_two(double ms);"
local lib = ffi.load(arg[3] .. "/truthc.so")

local function both(n)
        local one, two = 0, 0
        for i = 1, n do
                one = one + lib.truthc_one(0.3)
                two = two + lib.truthc_two(i % 2 == 0 and 0.1 or 0.2)
        end
        return one, two
end
local function given(f, n)
        local sum = 0
        for i = 1, n do sum = sum + f(0.2) end
        return sum
end
local function lua(n)
        local x = 0
        for i = 1, n do x = x + i % 5 end
        return x
end

local both_lines = truth.lines(both, 2, 5)

while truth.more() do
        local t = now()
        local one, two = both(100)
        local t1 = now()
        two = two + given(lib.truthc_two, vary(100))
        one = one + given(lib.truthc_one, 60)
        local t2 = now()
        lua(vary(3e7))
        local t3 = now()
        charge("leaf truthc_one", one)
        charge("leaf truthc_two", two)
        charge(both_lines, t1 - t)
        charge(truth.total(both), t1 - t)
        charge(truth.total(given), t2 - t1)
        charge(truth.total(lua), t3 - t2)
end
truth.done()
