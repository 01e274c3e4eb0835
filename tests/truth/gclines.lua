-- Time in the collector has the Lua function and the line that caused it: collections that are asked for at two lines,
-- and steps that allocations make.
package.path = arg[0]:match("^(.*/)") .. "?.lua;" .. package.path
local truth = require "truth"
local now, charge, vary = truth.now, truth.charge, truth.vary

local keep = {}
for i = 1, 20000 do keep[i] = { i } end
collectgarbage("collect")
collectgarbage("stop")

local function one()
        local x = 0
        collectgarbage("collect")
        for i = 1, vary(100000) do x = x + i % 7 end
        return x
end
local function two()
        local x = 0
        for i = 1, vary(100000) do x = x + i % 7 end
        collectgarbage("collect")
        return x
end

while truth.more() do
        local t = now()
        collectgarbage("collect")
        local each = now() - t                  -- no garbage: all collections are of one length
        for i = 1, 2 do one() end
        two()
        charge("vmstate G", 4 * each)
        charge("statelines G 14-14", 2 * each)
        charge("statelines G 21-21", each)
        charge("statelines G 27-27", each)
end
truth.done()
