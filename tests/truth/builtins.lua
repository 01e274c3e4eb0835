-- Builtins: each is a leaf of its own, with the time that was measured around it.
package.path = arg[0]:match("^(.*/)") .. "?.lua;" .. package.path
local truth = require "truth"
local now, charge, vary = truth.now, truth.charge, truth.vary

-- Strings that the VM's allocator has room for: mapped memory would be kernel time, which comes with the next tick.
local text = ("words and numbers 12345 "):rep(300)
local words, numbers = {}, {}
for i = 1, 2000 do words[i] = "word" .. i % 100 end

local function sort(n)
        for i = 1, n do numbers[i] = (i * 7919) % 10007 end
        for i = n + 1, #numbers do numbers[i] = nil end
        local t = now()
        table.sort(numbers)
        charge("leaf table.sort", now() - t)
end
local function gsub(n)
        local t, s = now()
        for i = 1, n do s = string.gsub(text, "%a+", "x") end
        charge("leaf string.gsub", now() - t)
        return s
end
local function format(n)
        local t, s = now()
        for i = 1, n do s = string.format("%q", text) end
        charge("leaf string.format", now() - t)
        return s
end
local function concat(n)
        local t, s = now()
        for i = 1, n do s = table.concat(words, ", ") end
        charge("leaf table.concat", now() - t)
        return s
end
local function rep(n)
        local t, s = now()
        for i = 1, n do s = string.rep(text, 8) end
        charge("leaf string.rep", now() - t)
        return s
end

while truth.more() do
        sort(vary(2000))
        gsub(vary(5))
        format(vary(20))
        concat(vary(20))
        rep(vary(60))
end
truth.done()
