-- Programs that LuaJIT does not compile as a whole, each for a reason that has its advice: the first argument says which.
-- Each runs for the second argument's seconds of CPU time.
local seconds, case = tonumber(arg[2]), arg[1]

local function long()                   -- one iteration has more instructions than a trace may
  local body = {}
  for k = 1, 1100 do body[k] = "x = x + t[i + " .. k .. "] * 2 x = x % 7" end
  return load("local t = setmetatable({}, { __index = function() return 1 end }) return function(n) for i = 1, n / 1000 do local x = i "
    .. table.concat(body, "\n") .. " end end")()
end

local loops = {}                        -- each is a trace of its own, of some KiB of machine code
for k = 1, 60 do
  local body = {}
  for i = 1, 60 do body[i] = "x = x + (i + " .. i * k .. ") % " .. i + 6 end
  loops[k] = load("return function(n) local x = 0 for i = 1, n do " .. table.concat(body, " ") .. " end return x end")()
end
local function all(after)
  return function() for k = 1, #loops do loops[k](200) if after then after() end end end
end

local list, numbers = "a,b,c", { 1, 2, 3 }
local co = coroutine.wrap(function() while true do coroutine.yield(1) end end)
local cases = {
  closure = function(n) local s = 0 for i = 1, n do local f = function(a) return a + i end s = f(s) end end,
  upvalue = function(n) for i = 1, n do local x = i if i % 4096 == 0 then co = function() return x end end end end,
  gsub = function(n) for i = 1, n do list:gsub(",", ";") end end,
  gmatch = function(n) for i = 1, n do for w in list:gmatch("[^,]+") do end end end,
  match = function(n) for i = 1, n do list:match("^%a") end end,
  find = function(n) for i = 1, n do list:find("b[,]") end end,
  unpack = function(n) for i = 1, n do local a, b = unpack(numbers, 1, i % 3) end end,
  coroutine = function(n) for i = 1, n do co() end end,
  long = long(),
  other = function(n)
    local ffi = require("ffi")
    ffi.cdef("typedef struct { int q, r; } two_ints; two_ints div(int, int);")
    for i = 1, n do local d = ffi.C.div(i, 3) end
  end,
  traces = all(),
  code = all(),
  flush = all(jit.flush),
  metatable = all(function() debug.setmetatable(1, nil) end),
  none = function(n) local s = 0 for i = 1, n do s = s + i % 7 end end,
}
if case == "traces" then jit.opt.start("maxtrace=30", "maxmcode=8192") end
if case == "code" then jit.opt.start("sizemcode=32", "maxmcode=64") end
if case == "other" then cases.other(1) cases.other = function(n) local C = require("ffi").C for i = 1, n do local d = C.div(i, 3) end end end
local t = os.clock()
while os.clock() - t < seconds do cases[case](50000) end
