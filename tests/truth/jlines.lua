-- Time in the JIT compiler has the line that is being compiled: two loops, loaded and compiled again and again.
package.path = arg[0]:match("^(.*/)") .. "?.lua;" .. package.path
local truth = require "truth"
local now, charge, vary = truth.now, truth.charge, truth.vary

-- Nothing else is compiled.
jit.off(true, true)
for _, f in pairs(truth) do jit.off(f, true) end
jit.opt.start("hotloop=2", "maxrecord=20000", "maxirconst=5000")

local line = "x = (x * 3 + y) % 1000003 y = y + x / 7 x = (x * 5 + y) % 1000003 y = y + x / 9\n"
local function code(first, lines)
        local head = ("\n"):rep(first - 1) .. "local x, y = 1, 2\nfor i = 1, 5 do\n"
        return head .. line:rep(lines) .. "end\nreturn x + y\n"
end
local short, long = {}, {}
for i = 1, 10 do short[i], long[i] = code(1, i + 5), code(31, i + 35) end

local function rest(n)
        local x = 0
        for i = 1, n do x = x + i % 7 end
        return x
end
jit.off(rest)

-- What the compiler writes into is protected before and after: a tick that falls due in the kernel comes when the program
-- goes on, or in what follows.
local ffi = require "ffi"
ffi.cdef [[
void *mmap(void *addr, size_t len, int prot, int flags, int fd, long offset);
int mprotect(void *addr, size_t len, int prot);
]]
local pages = ffi.C.mmap(nil, 32768, 3, 0x22, -1, 0)
ffi.fill(pages, 32768)
local function protect()                -- ns of two calls
        local t = now()
        for i = 1, 100 do
                ffi.C.mprotect(pages, 32768, 5)
                ffi.C.mprotect(pages, 32768, 3)
        end
        return (now() - t) / 100
end
jit.off(protect)

local protected = protect()
while truth.more() do
        rest(vary(200000))
        local a, b = vary(6), vary(6)
        a, b = loadstring(short[a], "@jcode.lua"), loadstring(long[b], "@jcode.lua")
        local t0 = now()
        local t = now()
        a()
        local t1 = now()
        b()
        local t2 = now()
        local reading = t - t0          -- interpreted it takes a fifth of what a does
        charge("late", 2 * protected)   -- two traces
        charge("tlines 1-20 jcode.lua", t1 - t - reading)
        charge("tlines 31-80 jcode.lua", t2 - t1 - reading)
end
truth.always "alllines J 1-80 jcode.lua"
truth.done()
