-- Five functions of one kind, 40/25/20/10/5 of the time: by function and by line.
package.path = arg[0]:match("^(.*/)") .. "?.lua;" .. package.path
local truth = require "truth"
local now, charge, vary = truth.now, truth.charge, truth.vary

local function a(n)
        local x = 0
        for i = 1, n do x = x + i % 7 end
        return x
end
local function b(n)
        local x = 0
        for i = 1, n do x = x + i % 5 end
        return x
end
local function c(n)
        local x = 1
        for i = 1, n do x = x * 1.0000001 + i % 3 end
        return x
end
local function d(n)
        local x = 0
        for i = 1, n do x = x + i / 3 end
        return x
end
local function e(n)
        local x = 0
        for i = 1, n do x = x - i % 11 end
        return x
end

local parts = { { a, 40 }, { b, 25 }, { c, 20 }, { d, 10 }, { e, 5 } }
local size = {}
for i, p in ipairs(parts) do                    -- measured once, so that the shares come near to the plan
        local t = now()
        p[1](200000)
        size[i] = math.floor(200000 * p[2] * 1e5 / (now() - t))
end
while truth.more() do
        for i = 1, #parts do
                local f = parts[i][1]
                local t = now()
                f(vary(size[i]))
                t = now() - t
                charge(truth.self(f), t)
                charge(truth.lines(f, 1, 3), t)
        end
end
truth.done()
