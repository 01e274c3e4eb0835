-- Full collections beside work: the collector is a VM state, charged to the function that called it.
package.path = arg[0]:match("^(.*/)") .. "?.lua;" .. package.path
local truth = require "truth"
local now, charge, vary = truth.now, truth.charge, truth.vary

local keep = {}
for i = 1, 40000 do keep[i] = { i } end
collectgarbage("collect")
collectgarbage("stop")

local function collect()
        collectgarbage("collect")
end
local function compute(n)
        local x = 0
        for i = 1, n do x = x + i % 7 end
        return x
end

while truth.more() do
        local t = now()
        collect()
        local t1 = now()
        compute(vary(400000))
        local t2 = now()
        charge("vmstate G", t1 - t)
        charge(truth.total(collect), t1 - t)
        charge("leaf collectgarbage", t1 - t)
        charge(truth.self(compute), t2 - t1)
end
truth.done()
