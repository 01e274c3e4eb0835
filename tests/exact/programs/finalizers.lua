-- Finalizers, which hooks do not see: each is called once, and calls what is compiled.
local N, calls, sum = tonumber(arg[1] or 1000), 0, 0
local function work(n) for i = 1, n do sum = sum + i % 3 end end
for round = 1, 10 do
  for i = 1, N / 10 do
    local p = newproxy(true)
    getmetatable(p).__gc = function() calls = calls + 1 work(20) end
    p = nil
  end
  collectgarbage() collectgarbage()
end
print(calls, sum)
