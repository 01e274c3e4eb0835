-- A sets a zone and yields, B (which has none) runs: B's time is not A's zone's. B takes 60 % of the time.
local zone = require "jit.zone"
local function work(n)
        local x = 0
        for i = 1, n do x = x + i % 7 end
        return x
end
local a = coroutine.wrap(function()
        zone "A"
        while true do
                work(20000)
                coroutine.yield()
        end
end)
local b = coroutine.wrap(function()
        while true do
                work(30000)
                coroutine.yield()
        end
end)
local stop = os.clock() + tonumber(arg[1] or 1)
while os.clock() < stop do
        a()
        b()
end
