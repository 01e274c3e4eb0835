-- Execs itself: chain.lua N LUAJIT. Each image works for some ms; the last prints "chain done".
local n, luajit = tonumber(arg[1]), arg[2]
local ms = tonumber(arg[3] or 40)
local function link_work(s)
        local stop, x = os.clock() + s, 0
        while os.clock() < stop do for i = 1, 1000 do x = x + i % 7 end end
        return x
end
link_work(ms / 1000)
if n == 0 then print("chain done") os.exit(0) end
local ffi = require "ffi"
ffi.cdef "int execl(const char *path, const char *a0, const char *a1, const char *a2, const char *a3, const char *a4, void *end);"
ffi.C.execl(luajit, luajit, arg[0], tostring(n - 1), luajit, tostring(ms), nil)
error("exec failed")
