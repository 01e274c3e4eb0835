-- Now and then nothing at all, then stacks that have little in common: bursts.lua
local function leaf(n)
        local x = 0
        for i = 1, 3000 do x = (x + i * n) % 1013 end
        return x
end
local function deep(n, k)
        if n == 0 then return leaf(k) end
        return deep(n - 1, k) + 1
end
local function deep2(n, k)
        if n == 0 then return leaf(k) end
        return deep2(n - 1, k) + 1
end
for turn = 1, 3 do
        io.popen("sleep 0.7"):read("*a")
        local stop = os.clock() + 0.3
        while os.clock() < stop do deep(150, 1) deep2(150, 2) end
end
