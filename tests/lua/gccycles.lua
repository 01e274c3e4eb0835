-- Makes tables and strings for so much CPU time, of which it keeps the last 200,000, and counts the collector's cycles by a
-- sentinel's finalizer and the most that collectgarbage("count") says: gccycles.lua SECONDS. Prints cycles and bytes.
local cycles, most = 0, 0
local function arm()
  getmetatable(newproxy(true)).__gc = function() cycles = cycles + 1 arm() end
end
arm()
local keep, i, stop = {}, 0, os.clock() + (tonumber(arg[1]) or 1)
while os.clock() < stop do
  for _ = 1, 1000 do
    i = i + 1
    keep[i % 200000] = { i, tostring(i) }
  end
  most = math.max(most, collectgarbage("count") * 1024)
end
print(cycles, most)
