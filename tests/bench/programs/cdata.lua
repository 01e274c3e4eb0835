-- Makes C data that outlive the loop's round, so that compiled code cannot do without: cdata.lua N
local ffi = require("ffi")
local pair = ffi.typeof("struct { double x, y; }")
local kept = {}
for i = 1, 64 do kept[i] = pair(i, i) end
for i = 1, tonumber(arg[1] or 1e6) do
    local p = kept[i % 64 + 1]
    kept[i * 7 % 64 + 1] = pair(p.y + i, p.x)
end
