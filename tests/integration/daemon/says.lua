-- A service that does what files tell it: FILE.mark, FILE.over, FILE.under, FILE.stall, FILE.read (a pipe that nobody writes to),
-- FILE.stop; each is removed when it begins. Its library is the module for programs that are not recorded.
local base, lib = arg[1], arg[2]
package.path = lib .. "/?.lua;" .. package.path
local ls = require "luasample"
local ffi = require "ffi"
ffi.cdef "int usleep(unsigned us);"

local function hot(seconds)
        local e, x = os.clock() + seconds, 0
        while os.clock() < e do
                for i = 1, 1000 do x = x + i % 7 end
        end
end

-- Waits in read(2) for as long: a child closes the other end then.
local function blocked(seconds)
        local p = io.popen("sleep " .. seconds)
        p:read "*a"
        p:close()
end

local does = {
        mark = function() ls.mark "slow request" end,
        over = function() ls.counter("queue", 1001) end,
        under = function() ls.counter("queue", 1) end,
        stall = function() hot(5) end,
        read = function() blocked(5) end,
        stop = function() os.exit(0) end,
}
ls.counter("queue", 0)
io.write("ready\n")
io.flush()
while true do
        for name, fn in pairs(does) do
                if os.remove(base .. "." .. name) then fn() end
        end
        ls.mark "quick"
        hot(0.005)
        ffi.C.usleep(20000)
end
