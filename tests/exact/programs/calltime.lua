-- Parts with 0, 0.8, 2 and 8 million calls (times arg 1), about equally long, and by its own clocks how long each
-- took on the CPU, and off it.
local scale = tonumber(arg and arg[1]) or 1
local function tiny(x) x = x % 7 + 1 x = x % 5 + 2 x = x % 3 return x end
local function work(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
local function none() local x = work(60000000 * scale) return x end
local function few() local x = 0 for i = 1, 800000 * scale do x = x + work(60) end return x end
local function some() local x = 0 for i = 1, 2000000 * scale do x = x + work(20) end return x end
local function many() local x = 0 for i = 1, 8000000 * scale do x = x + tiny(i) end return x end
local ffi = require "ffi"
ffi.cdef "typedef struct { long s, ns; } clock_is; int clock_gettime(int, clock_is *);"
local at = ffi.new "clock_is"
local function clock(id) ffi.C.clock_gettime(id, at) return tonumber(at.s) + tonumber(at.ns) / 1e9 end
for _, part in ipairs { { "none", none }, { "few", few }, { "some", some }, { "many", many } } do
        local wall, cpu = clock(1), clock(3)
        part[2]()
        cpu = clock(3) - cpu
        io.stderr:write(("%s %.6f %.6f\n"):format(part[1], cpu, clock(1) - wall - cpu))
end
