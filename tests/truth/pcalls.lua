-- Work under pcall and xpcall, ended by errors from below, and work in the handler. What an error takes to unwind the stack
-- is no time of the function that raised it.
package.path = arg[0]:match("^(.*/)") .. "?.lua;" .. package.path
local truth = require "truth"
local now, charge, vary = truth.now, truth.charge, truth.vary

local function works(n)
        local x = 0
        for i = 1, n do x = x + i % 7 end
        return x
end
local raised = 0
local function fails(n)
        local x = 0
        for i = 1, n do x = x + i % 5 end
        raised = now()
        error { x = x }
end
local function handler(e)
        local x = 0
        for i = 1, vary(40000) do x = x + i % 3 end
        return x
end
local function after(n)
        local x = 0
        for i = 1, n do x = x + i % 11 end
        return x
end

-- Each part is long beside what it takes to read the clock and to unwind: 1 us of 30 is a point of the shares.
while truth.more() do
        local t = now()
        pcall(works, vary(120000))
        local t1 = now()
        pcall(fails, vary(80000))
        local t2, raised1 = now(), raised
        pcall(pcall, pcall, fails, vary(20000))
        local raised2 = raised
        local t3 = now()
        after(vary(32000))
        local t4 = now()
        charge(truth.self(works), t1 - t)
        charge(truth.self(fails), raised1 - t1 + raised2 - t2)
        charge(truth.self(after), t4 - t3)
        local h = 0
        xpcall(error, function(e) local a = now() handler(e) h = now() - a end)
        charge(truth.self(handler), h)
end
truth.done()
