-- Small functions called in loops, which the compiler inlines: total shares of the loops.
package.path = arg[0]:match("^(.*/)") .. "?.lua;" .. package.path
local truth = require "truth"
local now, charge, vary = truth.now, truth.charge, truth.vary

local function add(a, b) return a + b end
local function mix(a, b)
        local c = add(a, b) % 1000
        return add(c, b)
end
local function loop1(n)
        local x = 0
        for i = 1, n do x = mix(x, i) end
        return x
end
local Point = {}
Point.__index = Point
function Point:move(d) self.x = (self.x + d) % 1000 self.y = (self.y - d) % 1000 end
local function loop2(n)
        local p = setmetatable({ x = 0, y = 0 }, Point)
        for i = 1, n do p:move(i) end
        return p
end

while truth.more() do
        local t = now()
        loop1(vary(12000))
        local t1 = now()
        loop2(vary(12000))
        local t2 = now()
        charge(truth.total(loop1), t1 - t)
        charge(truth.total(loop2), t2 - t1)
end
truth.done()
