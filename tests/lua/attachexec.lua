-- Works for so much CPU time, tries to run what is not there, works on, and runs another program in its own place.
local ffi = require "ffi"
ffi.cdef [[int execlp(const char *, const char *, ...); int *__errno_location(void);]]
local function work(seconds)
        local x, to = 0, os.clock() + seconds
        repeat for i = 1, 1e5 do x = x + i % 7 end until os.clock() >= to
end
io.stdout:write "begin\n"
io.stdout:flush()
work(tonumber(arg[1]))
ffi.C.execlp("/nowhere/at-all", "at-all", ffi.cast("char *", 0))
io.stdout:write("failed ", ffi.C.__errno_location()[0], "\n")
io.stdout:flush()
work(0.05)
ffi.C.execlp("sh", "sh", "-c", "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; echo new image", ffi.cast("char *", 0))
