-- Runs for ever in compiled code that inlines two functions; with an argument all of it is flushed and compiled again now
-- and then, so that other traces get the same numbers and addresses.
local flush = arg[1]
local grid, next = {}, {}
for i = 1, 2000 do grid[i], next[i] = i % 7, 0 end

local function near(g, i)
        local n = 0
        if g[i - 1] > 3 then n = n + g[i - 1] end
        if g[i] > 3 then n = n + g[i] end
        if g[i + 1] > 3 then n = n + g[i + 1] end
        return n
end
local function rule(g, i)
        if g[i] > 5 then return g[i + 3] % 3 end
        return g[i] % 5
end
local function step(g, h)
        for i = 4, #g - 4 do h[i] = near(g, i) % 1000 + rule(g, i) end
end
local function other(g)
        local x = 0
        for i = 1, #g do x = (x + g[i] * 3) % 1000003 end
        return x
end

io.stdout:write("begin\n")
io.stdout:flush()
local at, turn = os.clock(), 0
while true do
        turn = turn + 1
        for _ = 1, 10 do
                if turn % 2 == 0 then other(grid) end
                step(grid, next)
                if turn % 2 == 1 then other(next) end
        end
        if flush and os.clock() - at > 0.05 then
                jit.flush()
                at = os.clock()
        end
end
