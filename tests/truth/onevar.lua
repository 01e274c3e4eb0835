-- Two functions called through one variable, one name at the call: told apart by definition.
package.path = arg[0]:match("^(.*/)") .. "?.lua;" .. package.path
local truth = require "truth"
local now, charge, vary = truth.now, truth.charge, truth.vary

local function heavy(n)
        local x = 0
        for i = 1, n do x = x + i % 7 end
        return x
end
local function light(n)
        local x = 0
        for i = 1, n do x = x + i % 7 end
        return x
end

local f
while truth.more() do
        for i = 1, 4 do
                f = i == 4 and light or heavy
                local t = now()
                f(vary(200000))
                charge(truth.self(f), now() - t)
        end
end
truth.done()
