-- A hook that is called from each of five lines, with the same time at each.
jit.off()

local function burn(n)
  local s = 0
  for i = 1, n do s = s + i % 7 end
  return s
end

local function hook() burn(20000) end

local function work()
  debug.sethook(hook, "l")
  local a = 1           -- 14
  a = a + 1             -- 15
  a = a + 1             -- 16
  a = a + 1             -- 17
  debug.sethook()       -- 18
end

for i = 1, 300 do work() end
print("hooklines done")
