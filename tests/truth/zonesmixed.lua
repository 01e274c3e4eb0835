-- Zones of two coroutines pushed and popped in turns, so that their order mixes in jit.zone's one array: each keeps its own.
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

local function body(name, n)
        while true do
                zone(name)
                timed(name, vary(n))
                coroutine.yield()       -- the zone stays with this coroutine
                zone "inner"
                timed(name .. ";inner", vary(n / 2))
                coroutine.yield()
                zone()
                zone()
                timed("(none)", vary(24000))
                coroutine.yield()
        end
end

local a, b = coroutine.create(body), coroutine.create(body)
coroutine.resume(a, "A", 240000)
while truth.more() do
        coroutine.resume(b, "B", 160000)
        timed("(none)", vary(80000))
        coroutine.resume(a, "A", 240000)
end
truth.done()
