-- Binary trees, made and counted: trees.lua [ROUNDS]. Allocation and the collector.
local function make(depth)
        if depth == 0 then return {} end
        return { make(depth - 1), make(depth - 1) }
end

local function count(tree)
        if not tree[1] then return 1 end
        return 1 + count(tree[1]) + count(tree[2])
end

local function batch(depth, times)
        local nodes = 0
        for i = 1, times do nodes = nodes + count(make(depth)) end
        return nodes
end

local deepest, nodes = 14, 0
local long = make(deepest)
for round = 1, tonumber(arg[1] or 4) do
        for depth = 4, deepest, 2 do nodes = nodes + batch(depth, 2 ^ (deepest - depth + 2)) end
end
print("nodes", nodes, "long", count(long))
