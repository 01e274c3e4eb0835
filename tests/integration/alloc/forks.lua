-- Children that allocate, and close their VM, while the parent is attached to; the parent says how many did well.
local ffi = require("ffi")
ffi.cdef("int fork(void); int waitpid(int pid, int *status, int options);")
io.write("begin\n")
io.flush()
local status, good = ffi.new("int[1]"), 0
for _ = 1, tonumber(arg[1]) do
  local t = {}
  for i = 1, 20000 do t[i % 1000] = { i, "x" .. i } end
  local pid = ffi.C.fork()
  if pid == 0 then
    for i = 1, 20000 do t[i % 1000] = { i, "y" .. i } end
    os.exit(7, true)
  end
  if ffi.C.waitpid(pid, status, 0) == pid and status[0] == 7 * 256 then good = good + 1 end
end
print("good", good)
