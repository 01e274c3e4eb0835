-- Keeps one of a hundred tables that it makes; writes to arg[1] how many bytes of them there are: "line bytes objects" of the
-- line that leaks, and of a cache that is full from the start. arg[2]: how many it makes.
local n, leaked, cache = tonumber(arg[2]), {}, {}
for i = 1, n / 100 + 1 do leaked[i] = false end
local function make(i) return { i, i, i, i, i, i } end
local function leak(i) leaked[i / 100 + 1] = { i, i, i, i } end         -- line 6
local function fill() for i = 1, 5000 do cache[i] = { i, tostring(i) } end end
fill()
for i = 0, n do
    make(i)
    cache[i % 5000 + 1] = { i, i }                                      -- line 11
    if i % 100 == 0 then leak(i) end
end
collectgarbage()
local function bytes_of(make)
    collectgarbage() collectgarbage("stop")
    local t = {} for i = 1, 100 do t[i] = false end
    local before = collectgarbage("count")
    for i = 1, 100 do t[i] = make(i) end
    local each = (collectgarbage("count") - before) * 1024 / 100
    collectgarbage("restart")
    return each
end
local out = assert(io.open(arg[1], "w"))
local kept = math.floor(n / 100) + 1
out:write("6 ", math.floor(kept * bytes_of(function(i) return { i, i, i, i } end)), " ", kept, "\n")
out:write("11 ", math.floor(5000 * bytes_of(function(i) return { i, i } end)), " 5000\n")
out:close()
collectgarbage()
