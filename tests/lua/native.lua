-- Writes native stacks of LuaJIT itself: native.lua MODULE FILE. See tests/hosts/native_module.c.
local module, file = arg[1], arg[2]
local native = assert(package.loadlib(module, "luaopen_native"))()
local ffi = require "ffi"
ffi.cdef "int native_busy(int n); int native_callback(int (*f)(int), int n);"
local lib = ffi.load(module)

local function sample(name) native.sample(name) return 1 end
native.open(file)

sample("direct")
native.call(function() return sample("call") + 1 end)
native.pcall(function() return native.pcall(function() return native.call(function() sample("nested") end) end) end)
pcall(function() return sample("luapcall") + 1 end)
table.sort({ 3, 1, 2 }, function(a, b) sample("sort") return a < b end)
string.gsub("a", ".", function() sample("gsub") end)
coroutine.wrap(function() sample("coroutine") coroutine.yield() end)()
coroutine.wrap(function() native.pcall(function() coroutine.wrap(function() sample("coroutines") end)() end) end)()
local object = setmetatable({}, { __index = function(_, k) sample("meta") return k end })
local _ = object.field
local proxy = newproxy(true)
getmetatable(proxy).__gc = function() sample("gc") end
proxy = nil
collectgarbage()
local callback = ffi.cast("int (*)(int)", function(i) if i == 2 then sample("callback") end return i end)
lib.native_callback(callback, 3)

local function run(name, work)
        native.ticks("tick_" .. name)
        while native.taken() < 200 do work() end
        native.ticks(nil)
end

local function loop(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
local function alloc() local t for i = 1, 1000 do t = { i, tostring(i) } end return t end
local function ffi_calls() for _ = 1, 200 do lib.native_busy(200) end end
local plain_callback = ffi.cast("int (*)(int)", function(i) return i + 1 end)
local function ffi_callbacks() lib.native_callback(plain_callback, 50) end
local function sorts()
        local t = {}
        for i = 1, 200 do t[i] = (i * 7919) % 1000 end
        table.sort(t, function(a, b) return a < b end)
end
local function calls() for _ = 1, 100 do native.call(function() return loop(10) end) end end
local function pcalls() for i = 1, 100 do pcall(function() if i % 2 == 0 then error("x", 0) end end) end end
local function strings()
        local s = ""
        for i = 1, 100 do s = s:sub(-50) .. string.format("%d %s", i, s:sub(-20):rep(2):upper()) end
        return s
end
local function traces() load("local x = 0 for i = 1, 200 do x = x + i % 3 end return x")() end
local function math_calls()
        local x = 0.5
        for _ = 1, 1000 do x = math.floor(x * 1000) % 17 + math.sin(x) ^ 2 + x ^ 0.5 end
        return x
end

run("jit", function() loop(100000) end)
run("ffi", ffi_calls)
run("alloc", alloc)
run("sorts", sorts)
run("calls", calls)
run("pcalls", pcalls)
run("strings", strings)
run("traces", traces)
run("math", math_calls)
run("callbacks", ffi_callbacks)
jit.off()
jit.flush()
local function interp(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
run("interpreter", function() interp(10000) end)
run("interpreter_math", math_calls)
run("interpreter_strings", strings)
run("interpreter_ffi", ffi_calls)
