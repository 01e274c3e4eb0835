-- Lines that call C functions and builtins, each followed by cheap lines: the call's line is charged, not the next.
package.path = arg[0]:match("^(.*/)") .. "?.lua;" .. package.path
local truth = require "truth"
local now, charge, vary = truth.now, truth.charge, truth.vary

-- Strings that the VM's allocator has room for: mapped memory would be kernel time, which comes with the next tick.
local text = ("words and numbers 12345 "):rep(300)
local function calls(n)
        local t0, s, found, up = now()
        for i = 1, n do s = text:rep(8) end
        local len = #s
        local t1 = now()
        for i = 1, n do found = s:find("no such word", i, true) end
        local none = not found
        local t2 = now()
        for i = 1, n do up = s:sub(i):upper() end
        local same = up == text
        local t3 = now()
        return len, none, same, t1 - t0, t2 - t1, t3 - t2
end

while truth.more() do
        local _, _, _, rep, find, upper = calls(vary(40))
        charge("t" .. truth.lines(calls, 2, 2), rep)
        charge("t" .. truth.lines(calls, 5, 5), find)
        charge("t" .. truth.lines(calls, 8, 8), upper)
end
truth.done()
