-- Chains of tail calls: each function is charged with its own loop.
package.path = arg[0]:match("^(.*/)") .. "?.lua;" .. package.path
local truth = require "truth"
local now, charge, vary = truth.now, truth.charge, truth.vary

local function last(n, x)
        for i = 1, n do x = x + i % 3 end
        return x
end
local function middle(n, x)
        for i = 1, n * 2 do x = x + i % 5 end
        return last(n, x)
end
local function first(n, x)
        for i = 1, n * 5 do x = x + i % 7 end
        return middle(n, x)
end
-- The clock is read by functions of the chain's own kind, so the calls stay tail calls.
local t0, t1, t2
local function mark2(n, x) t2 = now() return last(n, x) end
local function middle_timed(n, x)
        for i = 1, n * 2 do x = x + i % 5 end
        return mark2(n, x)
end
local function mark1(n, x) t1 = now() return middle_timed(n, x) end
local function first_timed(n, x)
        for i = 1, n * 5 do x = x + i % 7 end
        return mark1(n, x)
end

while truth.more() do
        t0 = now()
        first_timed(8000, 0)
        local t3 = now()
        charge(truth.self(first_timed), t1 - t0)
        charge(truth.self(middle_timed), t2 - t1)
        local lasts = t3 - t2
        first(2000, 0)
        local t4 = now()
        charge(truth.self(last), lasts + (t4 - t3) / 8)
        charge(truth.self(first), (t4 - t3) * 5 / 8)
        charge(truth.self(middle), (t4 - t3) * 2 / 8)
end
truth.done()
