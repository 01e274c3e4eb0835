-- Zones over yields: A keeps its zone, B opens and closes its own between yields, main has none.
package.path = arg[0]:match("^(.*/)") .. "?.lua;" .. package.path
local truth = require "truth"
local now, charge, vary = truth.now, truth.charge, truth.vary

local zone = require "jit.zone"

local function work(n)
        local x = 0
        for i = 1, n do x = x + i % 7 end
        return x
end
local function timed(path, n)
        local t = now()
        work(n)
        charge("zone " .. path, now() - t)
end

local a = coroutine.create(function()
        zone "A"                        -- set once, open for as long as it lives
        while true do
                timed("A", vary(240000))
                coroutine.yield()
        end
end)
local b = coroutine.create(function()
        while true do
                zone "B"
                timed("B", vary(160000))
                zone "inner"
                timed("B;inner", vary(80000))
                zone()
                zone()
                coroutine.yield()
                timed("(none)", vary(40000))
        end
end)
while truth.more() do
        coroutine.resume(a)
        timed("(none)", vary(120000))
        coroutine.resume(b)
end
truth.done()
