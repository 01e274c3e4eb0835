-- Waits for replies, and reads them: for docs/tour.md.
local ffi = require "ffi"
ffi.cdef "int usleep(unsigned usec);"

local function wait_for_reply() ffi.C.usleep(20000) end

local function parse(n)
        local s = 0
        for i = 1, n do s = s + #string.format("%d,%s", i, "field") end
        return s
end

local function request()
        wait_for_reply()
        return parse(20000)
end

for _ = 1, tonumber(arg[1] or 40) do request() end
