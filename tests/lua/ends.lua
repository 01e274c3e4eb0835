-- Ends in the way that its first argument names, after 0.6 s of work; "ready" is printed before the end.
local how = arg[1]
local function work(s)
        local stop, x = os.clock() + s, 0
        while os.clock() < stop do for i = 1, 10000 do x = x + i % 7 end end
        return x
end
work(0.6)
print("ready")
io.stdout:flush()
if how == "osexit" then os.exit(3)
elseif how == "osexit-true" then os.exit(true, true)
elseif how == "error" then error("oops")
elseif how == "normal" then return
elseif how == "abort" then
        local ffi = require "ffi"
        ffi.cdef "void abort(void);"
        ffi.C.abort()
elseif how == "segv" then
        local ffi = require "ffi"
        ffi.cast("int *", 8)[0] = 1
elseif how == "_exit" then
        local ffi = require "ffi"
        ffi.cdef "void _exit(int);"
        ffi.C._exit(9)
elseif how == "kill" or how == "term" or how == "int" then
        local ffi = require "ffi"
        ffi.cdef "int kill(int pid, int sig); int getpid(void);"
        ffi.C.kill(ffi.C.getpid(), ({ kill = 9, term = 15, int = 2 })[how])
        work(5)
elseif how == "wait" then
        work(tonumber(arg[2] or 20))
        print("waited")
end
