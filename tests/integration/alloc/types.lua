-- Allocates blocks of known types at known lines, with the collector stopped, and writes to arg[1] what each line has taken:
-- "line objects bytes", as the collector's sum has it.
-- The types and sizes at each line are in run.py.
local out = assert(io.open(arg[1], "w"))
local rounds, keep = tonumber(arg[2]), {}
local ffi = require("ffi")
local box, vector, long = ffi.typeof("double[5]"), ffi.typeof("char[?]"), ("x"):rep(900)
for i = 1, 500 do keep[i] = false end
local function colocated(i) keep[i] = { i, i, i, i } end                        -- line 9: table
local function arrays(i) keep[i] = { i, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20 } end
local function hashes(i) keep[i] = { a = i, b = 1, c = 2, d = 3, e = 4 } end    -- line 11: table, its hash part
local function closures(i) local x = i; keep[i] = function() x = x + 1 return x end end
local function strings(i, r) keep[i] = long .. (r * 1000 + i) end               -- line 13: string
local function coroutines(i) keep[i] = coroutine.create(colocated) end          -- line 14: thread, Lua stack
local function userdata(i) keep[i] = newproxy(false) end                        -- line 15
local function boxes(i) keep[i] = box(i) end                                    -- line 16: cdata
local function vectors(i) keep[i] = vector(300) end                             -- line 17: cdata, of variable size
local function calls(i) keep[i] = string.gmatch("a", "b") end                   -- line 18: function

local parts = { { colocated, 9 }, { arrays, 10 }, { hashes, 11 }, { closures, 12 }, { strings, 13 }, { coroutines, 14 },
                { userdata, 15 }, { boxes, 16 }, { vectors, 17 }, { calls, 18 } }
local function run(part, n, r)
    for i = 1, n do part(i, r) end
end
for _, part in ipairs(parts) do
    run(part[1], 20, -1)
    part.objects, part.bytes = 0, 0
end
for r = 1, rounds do
    for _, part in ipairs(parts) do
        collectgarbage()
        collectgarbage("stop")
        local before = collectgarbage("count")
        run(part[1], 500, r)
        part.bytes = part.bytes + (collectgarbage("count") - before) * 1024
        part.objects = part.objects + 500
        collectgarbage("restart")
    end
end
for _, part in ipairs(parts) do out:write(part[2], " ", part.objects, " ", math.floor(part.bytes), "\n") end
out:close()
