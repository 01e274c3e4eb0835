-- A scheduler that turns among coroutines: for docs/tour.md.
local ffi = require "ffi"
ffi.cdef "int usleep(unsigned usec);"

local function compute() local x = 0 for i = 1, 2e5 do x = x + i % 7 end return x end
local function worker() while true do compute() coroutine.yield() end end

local all = {}
for i = 1, 6 do all[i] = coroutine.create(worker) end
local stop = os.time() + tonumber(arg[1] or 3)
while os.time() < stop do
        for _, co in ipairs(all) do coroutine.resume(co) ffi.C.usleep(5000) end
end
