-- Work under pcall and xpcall, ended by errors from below, and work in the handler.
package.path = arg[0]:match("^(.*/)") .. "?.lua;" .. package.path
local truth = require "truth"
local now, charge, vary = truth.now, truth.charge, truth.vary

local function works(n)
        local x = 0
        for i = 1, n do x = x + i % 7 end
        return x
end
local function fails(n)
        local x = 0
        for i = 1, n do x = x + i % 5 end
        error { x = x }
end
local function handler(e)
        local x = 0
        for i = 1, vary(10000) do x = x + i % 3 end
        return x
end
local function after(n)
        local x = 0
        for i = 1, n do x = x + i % 11 end
        return x
end

while truth.more() do
        local t = now()
        pcall(works, vary(30000))
        local t1 = now()
        pcall(fails, vary(20000))
        local t2 = now()
        pcall(pcall, pcall, fails, vary(5000))
        local t3 = now()
        after(vary(8000))
        local t4 = now()
        charge(truth.self(works), t1 - t)
        charge(truth.self(fails), t3 - t1)
        charge(truth.self(after), t4 - t3)
        local h = 0
        t = now()
        xpcall(error, function(e) local a = now() handler(e) h = now() - a end)
        charge(truth.self(handler), h)
end
truth.done()
