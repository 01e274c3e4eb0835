-- Allocates at known lines, with the collector stopped, and writes to arg[1] what each line has taken, as the collector's sum has it,
-- since nothing grows and nothing is freed: "line bytes objects least", least being the size of the smallest object there.
-- Strings are few and long: the table of all strings grows with their number.
local out = assert(io.open(arg[1], "w"))
local rounds, keep, floor = tonumber(arg[2]), {}, math.floor
local box, long = require("ffi").typeof("double[5]"), ("x"):rep(2000)
for i = 1, 1000 do keep[i] = false end

local function tables(n)
    for i = 1, n do keep[i % 1000 + 1] = { i, i, i, i } end             -- line 10
end
local function closures(n)
    for i = 1, n do
        local x = i * 2
        keep[i % 1000 + 1] = function() return x end                   -- line 15
    end
end
local function strings(n, from)
    for i = 1, n do
        keep[i % 1000 + 1] = long .. (from + i)                            -- line 20
    end
end
local function boxes(n)
    for i = 1, n do keep[i % 1000 + 1] = box(i) end                     -- line 24
end
local function coroutines(n)
    for i = 1, n do keep[i % 1000 + 1] = coroutine.create(tables) end   -- line 27
end
local parts = {
    { tables, 10, 1 }, { closures, 15, 2 }, { strings, 20, 1, 10 }, { boxes, 24, 1 }, { coroutines, 27, 2, 20, 96 },
}
for _, part in ipairs(parts) do
    part[1](100 / (part[4] or 1), -1000)        -- which is not in what is written: one part in 400
    part.bytes, part.objects = 0, 0
end
for round = 1, rounds do
    for _, part in ipairs(parts) do
        local n = floor(4000 / (part[4] or 1))

        collectgarbage()
        collectgarbage("stop")
        local before = collectgarbage("count")
        part[1](n, round * 100000)
        part.bytes = part.bytes + (collectgarbage("count") - before) * 1024
        part.objects = part.objects + n * part[3]
        collectgarbage("restart")
    end
end
for _, part in ipairs(parts) do 
    out:write(part[2], " ", floor(part.bytes), " ", part.objects, " ", part[5] or floor(part.bytes / part.objects), "\n")
end
out:close()
