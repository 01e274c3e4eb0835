-- Time in C functions and builtins of the library: charged to the Lua function that called them.
package.path = arg[0]:match("^(.*/)") .. "?.lua;" .. package.path
local truth = require "truth"
local now, charge, vary = truth.now, truth.charge, truth.vary

local text = ("some text with words and numbers 12345 "):rep(200)
local function find(n)
        local c = 0
        for i = 1, n do
                for w in text:gmatch("%a+") do c = c + #w end
        end
        return c
end
local function sort(n)
        local t = {}
        for i = 1, n do t[i] = (i * 7919) % 1009 end
        table.sort(t)
        return t[1]
end
local function concat(n)
        local t = {}
        for i = 1, n do t[i] = "x" .. i % 10 end
        return #table.concat(t, ",")
end

while truth.more() do
        local t = now()
        find(2)
        local t1 = now()
        sort(vary(1500))
        local t2 = now()
        concat(vary(4000))
        local t3 = now()
        charge(truth.total(find), t1 - t)
        charge(truth.total(sort), t2 - t1)
        charge(truth.total(concat), t3 - t2)
end
truth.done()
