-- Many different stacks, coroutines and names for some seconds of CPU time, with little memory of its own; then prints
-- what the process has used at most.
local fns = {}
for i = 1, 200 do
        fns[i] = load(("return function(f, n) local x = 0 for i = 1, 3000 do x = x + i %% %d end " ..
                       "if n > 0 then return 1 + f(n - 1) end return x end"):format(i + 1), "=f" .. i)()
end
local seed = 1
local function random(n)
        seed = (seed * 16807) % 2147483647
        return seed % n + 1
end
local call
function call(n) return fns[random(#fns)](call, n) end
collectgarbage()
collectgarbage "stop"
local stop = os.clock() + tonumber(arg[1] or 2)
local body = coroutine.wrap(function()
        while true do
                call(random(30))
                coroutine.yield()
        end
end)
while os.clock() < stop do body() end
for line in io.lines "/proc/self/status" do
        if line:match "^VmHWM" then print(line) end
end
