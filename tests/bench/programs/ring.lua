-- A token goes round a ring of coroutines: ring.lua [TOKENS]. Switches between coroutines.
local function station(id, nexts)
        local passed = 0
        while true do
                local token = coroutine.yield(passed)
                passed = passed + 1
                if token > 0 and nexts[id] then nexts[id](token - 1) end
        end
end

local size = 100
local ring, nexts = {}, {}
for i = size, 1, -1 do
        ring[i] = coroutine.wrap(station)
        ring[i](i, nexts)
        nexts[i - 1] = ring[i]
end
for i = 1, tonumber(arg[1] or 40000) do ring[1](size) end

local function producer(n)
        return coroutine.wrap(function() for i = 1, n do coroutine.yield(i) end end)
end
local function filter(source, k)
        return coroutine.wrap(function() for v in source do if v % k ~= 0 then coroutine.yield(v) end end end)
end
local primes, source = 0, producer(4000)
while true do
        local p = nil
        repeat p = source() until p ~= 1
        if not p then break end
        primes = primes + 1
        source = filter(source, p)
end
print("primes", primes)
