-- Who calls a function stands behind "--=" in its first line: the line of the call, or 0 when no Lua function calls it, and how often.
local N = tonumber(arg and arg[1]) or 1000
local function leaf(x) return x end                     --= 4:2*N 5:N 12:N 16:N 17:2*N
local function mid(x) return leaf(x) + leaf(x + 1) end  --= 10:N
local function tail(x) return leaf(x) end               --= 11:N
local object = setmetatable({}, { __index = function(_, k) return k end, --= 13:N
  __add = function(_, k) return k end })                --= 13:N
local s = 0
for i = 1, N do
  s = s + mid(i)
  s = s + tail(i)
  pcall(leaf, i)                                        -- by a C function: its caller
  s = s + object[i] + (object + i)
end
for i = 1, N do
  local ok = pcall(function() leaf(i) error("x") end)   --= 16:N
  s = s + leaf(i) + select(2, pcall(leaf, 1))
end
local function depth(n) if n == 0 then return 0 end return 1 + depth(n - 1) end --= 19:100 20:1
s = s + depth(100)
local function loop(n) if n > 0 then return loop(n - 1) end end --= 21:100 22:1
loop(100)
local co = coroutine.wrap(function(a) while true do a = coroutine.yield(a + 1) end end) --= 0:1
for i = 1, N do s = s + co(i) end
table.sort({ 3, 1, 2 }, function(a, b) return a < b end) --= 25:2
print(s)
