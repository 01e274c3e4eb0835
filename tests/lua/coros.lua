-- A million short coroutines: coros.lua [N]. Prints "coros done".
local function body(n)
        local x = 0
        for i = 1, n do x = x + i % 7 end
        coroutine.yield(x)
        return x
end
for i = 1, tonumber(arg[1] or 1e6) do
        local co = coroutine.wrap(body)
        co(30)
        co()
end
print("coros done")
