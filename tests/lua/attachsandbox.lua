-- attachsandbox.lua DEFAULT [NR:ACTION...]: after its start it lets a seccomp filter answer system calls with these actions (numbers),
-- all others with DEFAULT, says "begin", and burns. To be run without the JIT compiler, which makes system calls.
local ffi = require("ffi")
local bit = require("bit")
ffi.cdef [[
struct sock_filter { uint16_t code; uint8_t jt, jf; uint32_t k; };
struct sock_fprog { unsigned short len; struct sock_filter *filter; };
int prctl(int, unsigned long, unsigned long, unsigned long, unsigned long);
long write(int, const char *, size_t);
]]
local LD, JEQ, RET = 0x20, 0x15, 0x06
local code = { { LD, 0, 0, 0 } }
for i = 2, #arg do
  local nr, action = arg[i]:match("^(%d+):(%d+)$")
  code[#code + 1] = { JEQ, 0, 1, tonumber(nr) }
  code[#code + 1] = { RET, 0, 0, tonumber(action) }
end
code[#code + 1] = { RET, 0, 0, tonumber(arg[1]) }
local filter = ffi.new("struct sock_filter[?]", #code)
for i, c in ipairs(code) do
  filter[i - 1].code, filter[i - 1].jt, filter[i - 1].jf, filter[i - 1].k = c[1], c[2], c[3], c[4]
end
local prog = ffi.new("struct sock_fprog[1]", { { #code, filter } })
local function loop(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
loop(10000)
assert(ffi.C.prctl(38, 1, 0, 0, 0) == 0)
assert(ffi.C.prctl(22, 2, tonumber(ffi.cast("uintptr_t", prog)), 0, 0) == 0)
ffi.C.write(1, "begin\n", 6)
while true do loop(100000) end
