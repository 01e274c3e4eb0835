-- A chain of calls whose leaf takes all the time: main chunk > outer > middle > leaf.
local function leaf(n)
        local x = 0
        for i = 1, n do x = x + i % 7 end
        return x
end
local function middle(n)
        local x = leaf(n)
        return x
end
function outer(n)
        local x = middle(n)
        return x
end
function other(n)
        local x = leaf(n)
        return x
end
local stop = os.clock() + tonumber(arg and arg[1] or 0.8)
while os.clock() < stop do
        outer(30000)
        outer(30000)
        outer(30000)
        other(30000)
end
