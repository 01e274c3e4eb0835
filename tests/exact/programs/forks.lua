-- A child goes on, in compiled code and in new traces: it counts for itself. Its parent waits for it.
local ffi = require "ffi"
ffi.cdef "int fork(void); int waitpid(int, int *, int); void _exit(int);"
local function work(n) local s = 0 for i = 1, n do s = s + (i % 3 == 0 and 1 or 2) end return s end
local sum = work(1000)
io.stdout:flush()
local pid = ffi.C.fork()
if pid == 0 then
  for i = 1, 50 do work(500) end
  loadstring("local s = 0 for i = 1, 1000 do s = s + i % 7 end for k, v in pairs({ 1, 2, 3 }) do s = s + v end return s")()
  ffi.C._exit(7)
end
local status = ffi.new("int[1]")
assert(ffi.C.waitpid(pid, status, 0) == pid and status[0] == 7 * 256, "the child failed")
print(sum + work(1000))
