-- Runs what a stack walk must get through, between marks: native_steps.lua MODULE. See test_record_native_unwind_steps.c.
local module = arg[1]
local native = assert(package.loadlib(module, "luaopen_native"))()
local ffi = require "ffi"
ffi.cdef "int native_busy(int n); int native_callback(int (*f)(int), int n);"
local lib = ffi.load(module)

-- Once unseen, so that the dynamic linker is done, then seen.
local function steps(f)
        f()
        native.mark()
        f()
        native.mark()
end

local function leaf() local t = {} t[1] = tostring(1) .. "x" return math.floor(1.5) + math.sin(2) end
steps(function() for _ = 1, 2 do native.call(leaf) end end)
steps(function() native.pcall(error) pcall(error, "x") end)
steps(function() table.sort({ 3, 1, 2 }, function(a, b) return a < b end) string.gsub("ab", ".", function(c) return c end) end)
steps(function()
        local co = coroutine.wrap(function() for _ = 1, 2 do coroutine.yield(leaf()) end end)
        co() co()
end)

local function hot(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
local function hot_ffi(n) local x = 0 for _ = 1, n do x = x + lib.native_busy(3) end return x end
for _ = 1, 100 do hot(100) hot_ffi(100) end
steps(function() hot(50) end)
steps(function() hot_ffi(10) end)

jit.off()
jit.flush()
steps(function() hot_ffi(3) end)
local callback = ffi.cast("int (*)(int)", function(i) return i + 1 end)
steps(function() lib.native_callback(callback, 2) end)
