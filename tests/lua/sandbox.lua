-- sandbox.lua strict|filter|tsync|allow: burns, then forbids itself system calls, burns more, says "done" and ends, by calls that are
-- left. strict: seccomp's strict mode; filter: all but write and the ends are deadly; tsync: the same by seccomp(2), for all
-- threads; allow: ptrace alone is. Without the JIT compiler, which makes system calls.
jit.off()
local ffi = require("ffi")
ffi.cdef [[
struct sock_filter { uint16_t code; uint8_t jt, jf; uint32_t k; };
struct sock_fprog { unsigned short len; struct sock_filter *filter; };
int prctl(int, unsigned long, unsigned long, unsigned long, unsigned long);
long syscall(long, ...);
long write(int, const char *, size_t);
]]
local LD, JEQ, RET = 0x20, 0x15, 0x06
local KILL, ALLOW = 0x80000000, 0x7fff0000
local WRITE, EXIT, PTRACE, EXIT_GROUP, SECCOMP = 1, 60, 101, 231, 317
local programs = {
  filter = { { LD, 0, 0, 0 }, { JEQ, 3, 0, WRITE }, { JEQ, 2, 0, EXIT_GROUP }, { JEQ, 1, 0, EXIT }, { RET, 0, 0, KILL },
    { RET, 0, 0, ALLOW } },
  allow = { { LD, 0, 0, 0 }, { JEQ, 0, 1, PTRACE }, { RET, 0, 0, KILL }, { RET, 0, 0, ALLOW } },
}
programs.tsync = programs.filter
local how = arg[1]
local prctl, syscall, write = ffi.C.prctl, ffi.C.syscall, ffi.C.write
local zero, exit_number = ffi.new("long", 0), ffi.new("long", EXIT)
local function loop(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
loop(3e7)
if how == "strict" then
  prctl(22, 1, 0, 0, 0)
else
  local code = programs[how]
  local filter = ffi.new("struct sock_filter[?]", #code)
  for i, c in ipairs(code) do
    filter[i - 1].code, filter[i - 1].jt, filter[i - 1].jf, filter[i - 1].k = c[1], c[2], c[3], c[4]
  end
  local prog = ffi.new("struct sock_fprog[1]", { { #code, filter } })
  local address = tonumber(ffi.cast("uintptr_t", prog))
  assert(prctl(38, 1, 0, 0, 0) == 0)
  if how == "tsync" then
    assert(syscall(SECCOMP, ffi.new("long", 1), ffi.new("long", 1), ffi.new("long", address)) == 0)
  else
    assert(prctl(22, 2, address, 0, 0) == 0)
  end
end
loop(1e8)
write(1, "done\n", 5)
syscall(exit_number, zero)
