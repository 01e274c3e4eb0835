-- Leaves 1000 frames deep below two different roots: roots and leaves must both be right.
package.path = arg[0]:match("^(.*/)") .. "?.lua;" .. package.path
local truth = require "truth"
local now, charge, vary = truth.now, truth.charge, truth.vary

local function leaf1(n)
        local x = 0
        for i = 1, n do x = x + i % 7 end
        return x
end
local function leaf2(n)
        local x = 0
        for i = 1, n do x = x + i % 5 end
        return x
end
local function down(depth, leaf, n)
        if depth == 0 then return (leaf(n)) end
        local x = down(depth - 1, leaf, n)
        return x
end
local function root1(n)
        local x = down(1000, leaf1, vary(n * 6))
        x = x + down(1000, leaf2, vary(n))
        return x
end
local function root2(n)
        local x = down(1000, leaf2, n * 3)
        return x
end

local function timed(leaf)      -- charges the leaf's own time
        return function(n)
                local t = now()
                local x = leaf(n)
                charge(truth.self(leaf), now() - t)
                return x
        end
end
local l1, l2 = leaf1, leaf2
leaf1, leaf2 = timed(l1), timed(l2)

while truth.more() do
        local t = now()
        root1(vary(40000))
        local t1 = now()
        root2(vary(40000))
        local t2 = now()
        charge(truth.total(root1), t1 - t)
        charge(truth.total(root2), t2 - t1)
end
truth.done()
