-- attachsleep.lua CALL: sleeps 2.5 s in one system call, and says what that returned and how long it took.
local ffi = require("ffi")
ffi.cdef[[
struct spec { long s, ns; };
int clock_gettime(int id, struct spec *t);
int nanosleep(const struct spec *t, struct spec *left);
int poll(void *fds, unsigned long n, int ms);
int epoll_create1(int flags);
int epoll_wait(int fd, void *events, int n, int ms);
int select(int n, void *r, void *w, void *e, long *tv);
long read(int fd, void *buf, unsigned long n);
]]
local C, room = ffi.C, ffi.new("char[4096]")
local calls = {
  nanosleep = function() return C.nanosleep(ffi.new("struct spec", { 2, 500000000 }), nil) end,
  poll = function() return C.poll(nil, 0, 2500) end,
  epoll = function() return C.epoll_wait(C.epoll_create1(0), room, 10, 2500) end,
  select = function() return C.select(0, nil, nil, nil, ffi.new("long[2]", { 2, 500000 })) end,
  read = function() return C.read(0, room, 1) end,
}
local function now()
  local t = ffi.new("struct spec")
  C.clock_gettime(1, t)
  return tonumber(t.s) + tonumber(t.ns) / 1e9
end
print("begin")
io.stdout:flush()
local start = now()
local result = calls[arg[1]]()
print(arg[1], tonumber(result), ffi.errno(), now() - start)
