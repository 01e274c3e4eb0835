-- A service: works in "hot" until the file that the first argument names is there, then says how much CPU time it used. The second
-- argument is the share of the time in which it works.
local stop, share = arg[1], tonumber(arg[2] or "1")
local ffi = require "ffi"
ffi.cdef "int usleep(unsigned us);"

local function hot(until_clock)
        local x = 0
        while os.clock() < until_clock do
                for i = 1, 1000 do x = x + i % 7 end
        end
        return x
end

io.write("ready\n")
io.flush()
while true do
        local f = io.open(stop)
        if f then
                f:close()
                break
        end
        hot(os.clock() + 0.02 * share)
        if share < 1 then ffi.C.usleep(20000 * (1 - share)) end
end
io.write(("whole %.3f\n"):format(os.clock()))
