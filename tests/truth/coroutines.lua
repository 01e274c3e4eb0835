-- Work inside coroutines that yield many times, resumed by a loop that works too.
package.path = arg[0]:match("^(.*/)") .. "?.lua;" .. package.path
local truth = require "truth"
local now, charge, vary = truth.now, truth.charge, truth.vary

local function producer_work(n)
        local x = 0
        for i = 1, n do x = x + i % 7 end
        return x
end
local function filter_work(n)
        local x = 0
        for i = 1, n do x = x + i % 5 end
        return x
end
local function main_work(n)
        local x = 0
        for i = 1, n do x = x + i % 3 end
        return x
end
local function timed(f, n)
        local t = now()
        local x = f(n)
        charge(truth.self(f), now() - t)
        return x
end
local function producer()
        while true do
                timed(producer_work, vary(240000))
                coroutine.yield(1)
        end
end
local function filter(source)
        while true do
                local v = source()
                timed(filter_work, vary(120000))
                coroutine.yield(v)
        end
end

while truth.more() do           -- new coroutines now and then, as real programs have
        local p = coroutine.wrap(producer)
        local f = coroutine.create(filter)
        for i = 1, 50 do
                coroutine.resume(f, p)
                timed(main_work, vary(40000))
        end
end
truth.done()
