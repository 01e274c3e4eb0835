-- Packs texts with zlib through the FFI: for docs/tour.md.
local ffi = require "ffi"
ffi.cdef [[
unsigned long compressBound(unsigned long n);
int compress2(char *dest, unsigned long *destLen, const char *source, unsigned long n, int level);
]]
local z = ffi.load "libz.so.1"

local function text(n)
        local t = {}
        for i = 1, n do t[i] = ("word%d "):format(i * 7919 % 1009) end
        return table.concat(t)
end

local function pack(s)
        local size = ffi.new("unsigned long[1]", z.compressBound(#s))
        local buf = ffi.new("char[?]", size[0])
        assert(z.compress2(buf, size, s, #s, 6) == 0)
        return tonumber(size[0])
end

local function words(s) local n = 0 for _ in s:gmatch "%S+" do n = n + 1 end return n end

local sum = 0
for _ = 1, tonumber(arg[1] or 300) do local s = text(2000) sum = sum + pack(s) + words(s) end
print(sum)
