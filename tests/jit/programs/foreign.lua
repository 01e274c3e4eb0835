-- FFI: structures, arrays, 64-bit arithmetic, C calls; and traces stitched around functions that are not compiled.
local ffi = require("ffi")
ffi.cdef [[
typedef struct { double x, y; int32_t n; uint8_t tag[4]; } luasample_point;
int abs(int);
size_t strlen(const char *);
]]
local points = ffi.new("luasample_point[?]", 256)
local function fill(n)
        for i = 0, n - 1 do
                points[i].x = i * 0.5
                points[i].y = i + 1
                points[i].n = i
                points[i].tag[i % 4] = i % 200
        end
end
local function total(n)
        local s = 0
        for i = 0, n - 1 do
                local p = points[i]
                s = s + p.x * p.y + p.n
                s = s + p.tag[1]
        end
        return s
end
local function wide(n)
        local h = 1ULL
        for i = 1, n do
                h = h * 6364136223846793005ULL + i
                h = bit.bxor(h, bit.rshift(h, 17))
        end
        return tonumber(h % 1000ULL)
end
local function calls(n)
        local s = 0
        for i = 1, n do
                s = s + ffi.C.abs(-i)
                s = s + tonumber(ffi.C.strlen("some text"))
        end
        return s
end
local function stitched(n)
        local s = 0
        for i = 1, n do
                s = s + #os.date("%S", i)
                s = s + i % 7
        end
        return s
end
local s, stop = 0, os.clock() + tonumber(arg[1])
while os.clock() < stop do
        fill(256)
        for _ = 1, 20 do s = s + total(256) end
        s = s + wide(3000)
        s = s + calls(1000)
        s = s + stitched(100)
end
