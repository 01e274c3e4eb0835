-- Makes closures, which the JIT compiler does not: closures.lua N
local kept = {}
for i = 1, 64 do kept[i] = function() return i end end
for i = 1, tonumber(arg[1] or 3e5) do
    local x = kept[i % 64 + 1]() + 1
    kept[i * 7 % 64 + 1] = function() return x end
end
