-- Two functions, 70/30 of the time, in many turns: seventy.lua [SECONDS]. Prints "seventy done".
local function mul(n)
        local x = 1
        for i = 1, n do x = x * 1.0000001 + i % 7 end
        return x
end
local function add(n)
        local x = 1
        for i = 1, n do x = x * 1.0000001 + i % 7 end
        return x
end
local stop = os.clock() + tonumber(arg and arg[1] or 1)
while os.clock() < stop do
        for i = 1, 7 do mul(20000) end
        for i = 1, 3 do add(20000) end
end
print("seventy done")
