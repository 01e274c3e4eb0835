-- Builtins: each is a leaf of its own, with the time that was measured around it.
package.path = arg[0]:match("^(.*/)") .. "?.lua;" .. package.path
local truth = require "truth"
local now, charge, vary = truth.now, truth.charge, truth.vary

-- Strings that the VM's allocator has room for: mapped memory would be kernel time, which comes with the next tick.
local text = ("words and numbers 12345 "):rep(300)
local words, numbers = {}, {}
for i = 1, 2000 do words[i] = "word" .. i % 100 end

-- A builtin has no line: its time is that of the line that called it.
local line_of = {}

local function sort(n)
        for i = 1, n do numbers[i] = (i * 7919) % 10007 end
        for i = n + 1, #numbers do numbers[i] = nil end
        local t = now()
        table.sort(numbers)
        t = now() - t
        charge("leaf table.sort", t)
        charge(line_of.sort, t)
end
local function gsub(n)
        local t, s = now()
        for i = 1, n do s = string.gsub(text, "%a+", "x") end
        t = now() - t
        charge("leaf string.gsub", t)
        charge(line_of.gsub, t)
        return s
end
local function format(n)
        local t, s = now()
        for i = 1, n do s = string.format("%q", text) end
        t = now() - t
        charge("leaf string.format", t)
        charge(line_of.format, t)
        return s
end
local function concat(n)
        local t, s = now()
        for i = 1, n do s = table.concat(words, ", ") end
        t = now() - t
        charge("leaf table.concat", t)
        charge(line_of.concat, t)
        return s
end
local function rep(n)
        local t, s = now()
        for i = 1, n do s = string.rep(text, 8) end
        t = now() - t
        charge("leaf string.rep", t)
        charge(line_of.rep, t)
        return s
end

line_of.sort, line_of.gsub = truth.lines(sort, 4, 4), truth.lines(gsub, 2, 2)
line_of.format, line_of.concat = truth.lines(format, 2, 2), truth.lines(concat, 2, 2)
line_of.rep = truth.lines(rep, 2, 2)

while truth.more() do
        sort(vary(2000))
        gsub(vary(5))
        format(vary(20))
        concat(vary(20))
        rep(vary(60))
end
truth.done()
