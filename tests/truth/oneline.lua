-- Two closures defined on one line: told apart by their code.
package.path = arg[0]:match("^(.*/)") .. "?.lua;" .. package.path
local truth = require "truth"
local now, charge, vary = truth.now, truth.charge, truth.vary

local f, g = function(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end, function(n) local x = 1 for i = 1, n do x = x - i % 5 end return x end

while truth.more() do
        local t = now()
        f(vary(240000))
        local t1 = now()
        g(vary(60000))
        local t2 = now()
        charge(truth.oneline(f, 1), t1 - t)
        charge(truth.oneline(g, 2), t2 - t1)
end
truth.done()
