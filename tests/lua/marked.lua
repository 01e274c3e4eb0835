-- A loop that is compiled, one that LuaJIT gives up, and one that it gave up before; and strings for the collector.
local function compiled(n) local x = 0
        for i = 1, n do
                x = x + i % 7
        end
        return x
end
local function closures(n) local x = 0
        for i = 1, n do
                x = x + (function() return i end)()
        end
        return x
end
local function given_up_early(n) local f
        for i = 1, n do f = function() return i end end
        return f
end
for i = 1, 30 do given_up_early(10000) end
local kept, t0 = {}, os.clock()
while os.clock() - t0 < 1 do
        compiled(300000)
        closures(3000)
        for i = 1, 3000 do kept[i] = { tostring(i) } end
end
