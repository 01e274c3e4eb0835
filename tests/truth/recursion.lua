-- A function that calls itself twice, beside a loop: its total counts each sample once.
package.path = arg[0]:match("^(.*/)") .. "?.lua;" .. package.path
local truth = require "truth"
local now, charge, vary = truth.now, truth.charge, truth.vary

local function fib(n)
        if n < 2 then return n end
        return fib(n - 1) + fib(n - 2)
end
local function loop(n)
        local x = 0
        for i = 1, n do x = x + i % 7 end
        return x
end
local odd
local function even(n)          -- two that call each other
        if n == 0 then return true end
        local x = 0
        for i = 1, 50 do x = x + i % 3 end
        local r = odd(n - 1)
        return r, x
end
function odd(n)
        if n == 0 then return false end
        local r = even(n - 1)
        return r
end

while truth.more() do
        local t = now()
        fib(20)
        local t1 = now()
        loop(vary(30000))
        local t2 = now()
        for i = 1, vary(4) do even(100) end
        local t3 = now()
        charge(truth.self(fib), t1 - t)
        charge(truth.total(fib), t1 - t)
        charge(truth.self(loop), t2 - t1)
        charge(truth.total(even), t3 - t2)
end
truth.done()
