-- 4096 coroutines that live at once, each in and out of compiled code; and loops whose recording ends in an error.
local rounds, sum = tonumber(arg[1] or 20), 0
local function body(a)
  while true do
    for i = 1, a % 7 do sum = sum + i end
    a = coroutine.yield(a + 1)
  end
end
local all = {}
for i = 1, 4096 do all[i] = coroutine.create(body) end
for round = 1, rounds do
  for i = 1, #all do
    local ok, a = coroutine.resume(all[i], i + round)
    sum = sum + a
  end
end
local function breaks(i)
  local t = i % 3 == 0 and {} or nil
  return t.x
end
for i = 1, 50 * rounds do
  local ok = pcall(breaks, i)
  local compiled = pcall(function() for k = 1, 60 do if k == 58 + i % 4 then error("hot") end sum = sum + k end end)
  sum = sum + (ok and 1 or 2) + (compiled and 3 or 4)
end
print(sum)
