-- Calls inlined three deep, on a chain of dependent divisions.
local function leaf(a)
        a = (a * 7 + 3) % 1000003
        a = (a * 5 + 1) % 1000003
        a = (a * 9 + 1) % 1000003
        return a
end
local function middle(a)
        a = (a * 11 + 5) % 1000003
        a = leaf(a)
        a = (a * 13 + 5) % 1000003
        return a
end
local function top(a)
        a = (a * 17 + 3) % 1000003
        a = middle(a)
        a = middle(a)
        a = (a * 19 + 1) % 1000003
        return a
end
local x, stop = 0, os.clock() + tonumber(arg[1])
while os.clock() < stop do
        for _ = 1, 20000 do
                x = top(x)
        end
end
