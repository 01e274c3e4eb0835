-- Two loops in one function, about 70/30: by line, and a function of its own beside.
package.path = arg[0]:match("^(.*/)") .. "?.lua;" .. package.path
local truth = require "truth"
local now, charge, vary = truth.now, truth.charge, truth.vary

local function both(n, m)
        local x = 0
        local t0 = now()
        for i = 1, n * 7 do
                x = x + i % 7
        end
        local t1 = now()
        for i = 1, m * 3 do
                x = x + i % 5
        end
        local t2 = now()
        return x, t1 - t0, t2 - t1
end

while truth.more() do
        local _, first, second = both(vary(80000), vary(80000))
        charge(truth.self(both), first + second)
        charge(truth.lines(both, 3, 5), first)
        charge(truth.lines(both, 7, 9), second)
end
truth.done()
