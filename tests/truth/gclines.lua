-- Time in the collector has the Lua function and the line that caused it: collections that are asked for at two lines,
-- and steps that allocations make.
package.path = arg[0]:match("^(.*/)") .. "?.lua;" .. package.path
local truth = require "truth"
local now, charge, vary = truth.now, truth.charge, truth.vary

local keep = {}
for i = 1, 20000 do keep[i] = { i } end
collectgarbage("collect")
collectgarbage("stop")

-- Each is timed by itself: on a busy machine one that comes after other work takes a third longer than one after another.
local first, second = 0, 0
local function one()
        local x, t = 0, now()
        collectgarbage("collect")
        first = first + now() - t
        for i = 1, vary(100000) do x = x + i % 7 end
        return x
end
local function two()
        local x = 0
        for i = 1, vary(100000) do x = x + i % 7 end
        local t = now()
        collectgarbage("collect")
        second = second + now() - t
        return x
end

while truth.more() do
        local t = now()
        collectgarbage("collect")
        local each = now() - t
        first, second = 0, 0
        for i = 1, 2 do one() end
        two()
        charge("vmstate G", each + first + second)
        charge("statelines G 16-16", first)
        charge("statelines G 25-25", second)
        charge("statelines G 32-32", each)
end
truth.done()
