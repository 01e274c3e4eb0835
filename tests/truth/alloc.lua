-- Allocating functions, whose share holds the collector's steps.
package.path = arg[0]:match("^(.*/)") .. "?.lua;" .. package.path
local truth = require "truth"
local now, charge, vary = truth.now, truth.charge, truth.vary

local function tables(n)
        local t
        for i = 1, n do t = { i, i + 1, { t and t[1] } } end
        return t
end
local function strings(n)
        local s
        for i = 1, n do s = "key" .. i .. "value" end
        return s
end
local function compute(n)
        local x = 0
        for i = 1, n do x = x + i % 7 end
        return x
end

while truth.more() do
        local t = now()
        tables(vary(4000))
        local t1 = now()
        strings(vary(3000))
        local t2 = now()
        compute(vary(60000))
        local t3 = now()
        charge(truth.self(tables), t1 - t)
        charge(truth.self(strings), t2 - t1)
        charge(truth.self(compute), t3 - t2)
end
truth.done()
