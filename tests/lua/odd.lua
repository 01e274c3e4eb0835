-- Odd things that a program may do, with a tick at any point of each. What it prints, and status 7, are the check.
local function burn(n) local s = 0 for i = 1, n do s = s + i % 7 end return s end
-- deep recursion to the limit, stack overflow caught
local function deep(n) return n == 0 and 0 or 1 + deep(n - 1) end
for i = 1, 20 do local ok, e = pcall(deep, 1e9) assert(not ok) end
print(deep(15000))
-- coroutines in coroutines
local function nest(n) if n == 0 then burn(1e5) error("deep") end return coroutine.wrap(function() return nest(n - 1) end)() end
for i = 1, 30 do print((pcall(nest, 50))) end
-- finalizers that work
for i = 1, 300 do local p = newproxy(true) getmetatable(p).__gc = function() burn(30000) end end
collectgarbage() collectgarbage()
-- load with readers that fail, recurse, yield
for i = 1, 50 do
  load(function() error("x") end, "=a")
  load(function() burn(20000) load(function() return nil end, "=inner") return nil end, "=b")
  coroutine.wrap(function() load(function() coroutine.yield() end, "=c") end)()
end
-- stripped bytecode
local bc = string.dump(function(a, ...) local function inner(x) local s = 0 for i = 1, x do s = s + i end return s end local t = { inner(2e5), ... } function t.m() return inner(2e5) end return t.m() + t[1] end, true)
for i = 1, 20 do assert(load(bc, "=stripped", "b"))(1, 2, 3) end
-- 200 locals
local src = {} for i = 1, 190 do src[#src + 1] = "local v" .. i .. " = " .. i end
local f = load(table.concat(src, "\n") .. "\nlocal function inner() burn2(1e5) end inner() return v1") burn2 = burn for i = 1, 20 do f() end
-- FFI callbacks
local ffi = require "ffi"
ffi.cdef "void qsort(void *, size_t, size_t, int (*)(const int *, const int *));"
jit.off(true, true)
local a = ffi.new("int[100]") for i = 0, 99 do a[i] = (i * 37) % 100 end
local cb = ffi.cast("int (*)(const int *, const int *)", function(x, y) burn(200) return x[0] - y[0] end)
ffi.C.qsort(a, 100, 4, cb) print(a[0], a[99])
-- metatables that fail
local jp = require "jit.profile" local zone = require "jit.zone" setmetatable(_G, { __index = function(t, k) error("strict " .. tostring(k), 2) end })
debug.setmetatable("", { __index = string, __add = function(a, b) burn(1000) return 1 end })
for i = 1, 100 do local x = "a" + "b" end
debug.setmetatable(nil, { __index = function() burn(1000) end, __call = function() burn(1000) end })
for i = 1, 100 do local x = (nil).y (nil)() end
debug.setmetatable(nil, nil)
-- odd names
_G["a\0b" .. string.rep("z", 65536)] = function() burn(1e6) end _G["a\0b" .. string.rep("z", 65536)]()
-- jit on, off, flush
for i = 1, 100 do jit.flush() jit.off() burn(5000) jit.on() burn(5000) end
-- zones

zone(1.5) zone(true) zone({}) zone(string.rep("q", 70000)) burn(1e6) zone() zone() zone() zone()
print(pcall(zone))
local P = jp
local n = 0
P.start("fi1", function(th, s, v) n = n + s P.dumpstack(th, "F", 5) end) burn(3e6) P.start("li1", function() end) burn(1e6) P.stop() P.stop()
P.start("i1", function() P.stop() end) burn(1e7) P.stop()

package.loaded = nil package = nil burn(1e6)
setfenv(0, {}) burn(1e6)
local G = _G
G.io.write("end\n")
G.os.exit(7, true)
