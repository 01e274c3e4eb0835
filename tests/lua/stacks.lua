-- Work at a given depth: stacks.lua DEPTH SECONDS. The deepest function is leaf_at_depth, the root is main_root.
local depth, seconds = tonumber(arg[1]), tonumber(arg[2] or 1)
local function leaf_at_depth(n)
        local x = 0
        for i = 1, n do x = x + i % 7 end
        return x
end
local stop = os.clock() + seconds
local function down(d)
        if d <= 0 then
                while os.clock() < stop do leaf_at_depth(200000) end
                return 1
        end
        local x = down(d - 1)
        return x + 1
end
function main_root() return (down(depth)) + 1 end
main_root()
print(("cpu %.6f"):format(os.clock()))
