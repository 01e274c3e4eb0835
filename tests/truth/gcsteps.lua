-- The collector's steps come where memory is asked for: all of its time has such a line, none that of work beside it.
package.path = arg[0]:match("^(.*/)") .. "?.lua;" .. package.path
local truth = require "truth"
local now, charge, vary = truth.now, truth.charge, truth.vary

collectgarbage "stop"           -- what is made here has no steps
local keep = {} for i = 1, 20000 do keep[i] = { i } end
collectgarbage "restart"
local function tables(n)
        local t
        for i = 1, n do t = { i } end
        return t
end
local function numbers(n)
        local x = 0
        for i = 1, n do x = x + i % 7 end
        return x
end

while truth.more() do
        local t = now()
        tables(vary(3000))
        local t1 = now()
        numbers(vary(60000))
        local t2 = now()
        charge(truth.total(tables), t1 - t)
        charge(truth.total(numbers), t2 - t1)
end
truth.always "alllines G 11-11"
truth.done()
