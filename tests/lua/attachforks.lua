-- Forks a worker each 0.2 s of its own CPU time, which works for 0.6 s and ends; the parent works too, and says how each has ended.
local ffi = require("ffi")
ffi.cdef [[int fork(void); void _exit(int); int waitpid(int, int *, int);]]
local function clock() return os.clock() end
local function spin(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
function parent_work(seconds)
  local e = clock() + seconds
  repeat local x = 0 for i = 1, 20000 do x = x + i % 7 end until clock() >= e
end
function child_work(seconds)
  local e = clock() + seconds
  repeat local x = 0 for i = 1, 20000 do x = x + i % 7 end until clock() >= e
end

parent_work(0.05)
child_work(0.05)
io.stdout:write("begin\n")
io.stdout:flush()
local status, children = ffi.new("int[1]"), {}
for _ = 1, 300 do
  local pid = ffi.C.fork()
  if pid == 0 then
    child_work(0.6)
    ffi.C._exit(spin(0))
  end
  children[#children + 1] = pid
  parent_work(0.2)
  for i = #children, 1, -1 do
    if ffi.C.waitpid(children[i], status, 1) == children[i] then    -- WNOHANG
      io.stdout:write("child ", status[0], "\n")
      io.stdout:flush()
      table.remove(children, i)
    end
  end
end
