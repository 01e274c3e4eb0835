-- SECONDS [CODE [SECONDS]]: so much CPU time in first, then CODE, then CPU time in second.
local clock = os.clock

local function work(seconds)
  local ends, n = clock() + seconds, 0
  while clock() < ends do
    for i = 1, 20000 do n = n + i % 7 end
  end
  return n
end

local function first(seconds) local n = work(seconds) return n end
local function second(seconds) local n = work(seconds) return n end

first(tonumber(arg[1]))
if arg[2] then assert(loadstring(arg[2]))() end
if arg[3] then second(tonumber(arg[3])) end
