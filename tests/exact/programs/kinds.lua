-- Each way in which control goes from one bytecode to another, in loops that are compiled: all of it is the same in each run.
-- LS_JIT in the environment: on or off.
local N = tonumber(arg[1] or 300)
local sum = 0
local function add(n) sum = sum + n end

local function errors(n)                -- out of compiled code, and out of a function that it calls
  for i = 1, n do
    local ok, why = pcall(function(x) if x % 7 == 0 then error({ x }) end return x end, i)
    add(ok and 1 or why[1])
    ok = pcall(error, "plain")
    add(select(2, xpcall(function() return nil + i end, function() return i end)))
  end
end

local function metas(n)
  local calls = 0
  local object = setmetatable({}, {
    __index = function(_, key) calls = calls + 1 return #key end, __newindex = function(t, k, v) rawset(t, k, v + 1) end,
    __add = function(_, b) return b * 2 end, __call = function(_, a, b) return a - b end, __len = function() return 3 end,
    __eq = function() return true end, __lt = function() return false end, __concat = function(_, b) return b end,
  })
  for i = 1, n do
    add(object.missing + (object + i) + object(i, 1))
    object["k" .. i % 20] = i
    add(#(object .. "x"))
  end
  add(calls)
end

local function varargs(n)
  local function count(...) return select("#", ...) end
  local function pass(...) return count(...), ... end
  local function last(...) local t = { ... } return t[#t] end
  for i = 1, n do add(count(i, nil, nil) + (pass(i, i)) + last(1, 2, i)) end
end

local function tails(n)
  local function odd(k) if k == 0 then return 1 end return (function(j) return j end)(k - 1) end
  local function loop(k, acc) if k == 0 then return acc end return loop(k - 1, acc + 1) end
  for i = 1, n do add(odd(i) + loop(i % 9, 0)) end
end

local function coroutines(n)
  local function body(a) while true do a = coroutine.yield(a + 1) end end
  for i = 1, n do
    local co = coroutine.wrap(body)
    for k = 1, i % 5 do add(co(k)) end
    local dead = coroutine.create(function() error("x") end)
    add(coroutine.resume(dead) and 1 or 2)
  end
end

local function deep(n)                  -- the stack grows, in a new coroutine each time
  local function down(k, ...) if k == 0 then return select("#", ...) end return 1 + down(k - 1, k, ...) end
  local function fib(k) if k < 2 then return k end return fib(k - 1) + fib(k - 2) end
  for i = 1, n / 20 do add(coroutine.wrap(function() return down(100) + fib(8) end)()) end
  add(fib(17))
end

local function loops(n)
  local t = { 3, 1, 2 }
  for i = 1, n do
    for j = 1, i % 4 do add(j) end
    for j = i, i - 3, -1 do if j % 2 == 0 then add(1) else goto next end ::next:: end
    for _, v in ipairs(t) do add(v) end
    for _, v in pairs(t) do add(v) end
    for _, v in next, t do add(v) end
    local k = 0
    while k < i % 6 do k = k + 1 if k == 4 then break end end
    repeat k = k - 1 until k <= 0
    for w in ("a b c"):gmatch("%a") do add(#w) end
  end
end

local function callbacks(n)
  for i = 1, n do
    local t = { 5, i % 7, 3, 9 }
    table.sort(t, function(a, b) return a < b end)
    add(t[1])
    add(#("abc"):gsub("%a", function(c) return c .. c end))
    add(#tostring(setmetatable({}, { __tostring = function() return "t" .. i end })))
  end
end

local function upvalues(n)
  local fs = {}
  for i = 1, n do
    local v = i
    fs[i % 10] = function(d) v = v + d return v end
    add(fs[i % 10](1) + (fs[(i + 1) % 10] or add and function() return 0 end)(2))
  end
end

local function modes(n)                 -- the program changes what the VM dispatches to
  for round = 1, 4 do
    for i = 1, n do add(i % 3) end
    debug.sethook(type, "crl", 3)
    for i = 1, 20 do add(i % 5) pcall(add, 1) end
    debug.sethook()
    jit.flush()
    for i = 1, n do add(i % 3) end
    jit.off()
    for i = 1, n do add(i % 2) end
    jit[os.getenv("LS_JIT")]()
  end
end

local function storage(n)
  local ffi = require "ffi"
  local a = ffi.new("int[10]")
  for i = 1, n do a[i % 10] = a[(i + 1) % 10] + i add(a[i % 10] % 5) end
  local up = ffi.cast("int (*)(int)", function(x) return x + 1 end)
  jit.off(storage)
  for i = 1, n / 10 do add(up(i)) end
  up:free()
end

for round = 1, 3 do
  errors(N) metas(N) varargs(N) tails(N) coroutines(N) deep(N) loops(N) callbacks(N) upvalues(N)
end
modes(N)
storage(N)
print(sum)
