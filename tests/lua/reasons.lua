-- A part of a known reason not to be compiled, and one that looks like it and is compiled: as the first argument says.
-- Each runs for half of the second argument's seconds. Prints the CPU time of both.
local case, seconds = arg[1], tonumber(arg[2] or 1)

local function sum(n)
  local s = 0
  for i = 1, n do s = s + i % 7 end
  return s
end

local function add(a, b) return a + b end

local function closures(n)
  local s = 0
  for i = 1, n do
    local f = function(a) return a + i end
    s = f(s)
  end
  return s
end

local function calls(n)
  local s = 0
  for i = 1, n do
    local f = add
    s = f(s, i)
  end
  return s
end

local function off(n)
  local s = 0
  for i = 1, n do s = s + i % 7 end
  return s
end
jit.off(off)

local function replace(n)
  local s = 0
  for i = 1, n do s = s + #string.gsub("hello world", "o", "0") end
  return s
end

local function bytes(n)
  local s = 0
  for i = 1, n do s = s + string.byte("hello world", i % 11 + 1) end
  return s
end

-- Compiled with how 1; then how 2 leaves it at each iteration.
local function branch(n, how)
  local s = 0
  for i = 1, n do
    if how == 2 then
      s = s + i % 5 + i % 3 + i % 11
    else
      s = s + i % 7
    end
  end
  return s
end

local function adder(b) return function(a) return a + b end end

local function branch_closures(n, how)
  local s = 0
  for i = 1, n do
    if how == 2 then
      s = adder(i)(s)
    else
      s = s + i % 7
    end
  end
  return s
end

local cases = {
  bytecode = { closures, calls },
  off_function = { off, sum },
  off = { sum, sum },
  stitch = { replace, bytes },
  exit = { function(n) branch(n, 2) end, function(n) branch(n, 1) end },
  exit_aborted = { function(n) branch_closures(n, 2) end, function(n) branch_closures(n, 1) end },
}
if case == "off" then jit.off() end
if case == "exit" then jit.opt.start("hotexit=400") end        -- a counter of 8 bits gets there never
if case:find("^exit") then branch(1000, 1) branch_closures(1000, 1) end
if case == "flush" then
  for i = 1, 3 do sum(1000) jit.flush() end
  cases.flush = { sum, sum }
elseif case == "flush_full" then        -- by the program, with as many traces as there may be
  jit.opt.start("maxtrace=20")
  for i = 1, 20 do loadstring("local s = 0 for i = 1, 200 do s = s + i % " .. i + 1 .. " end")() end
  jit.flush() jit.opt.start("maxtrace=1000")
  cases.flush_full = { sum, sum }
elseif case == "metatable" then         -- of a basic type; that of a table is none
  for i = 1, 3 do sum(1000) debug.setmetatable(1, i < 3 and {} or nil) end
  cases.metatable = { sum, sum }
elseif case == "table" then
  for i = 1, 3 do sum(1000) debug.setmetatable({}, {}) end
  cases.table = { sum, sum }
elseif case == "traces" then
  jit.opt.start("maxtrace=20")
  for i = 1, 50 do loadstring("local s = 0 for i = 1, 200 do s = s + i % " .. i + 1 .. " end")() end
  cases.traces = { sum, sum }
elseif case == "code" then
  jit.opt.start("maxmcode=32", "sizemcode=32")
  for i = 1, 400 do loadstring("local s = 0 for i = 1, 200 do s = s + i % " .. i + 1 .. " end")() end
  cases.code = { sum, sum }
end

local times = {}
for i = 1, 2 do
  local run, start = cases[case][i], os.clock()
  repeat run(20000) until os.clock() - start > seconds / 2
  times[i] = os.clock() - start
end
print(("%.6f %.6f"):format(times[1], times[2]))
