-- Tables that compiled code never makes.
local sum = 0
for i = 1, 2e7 do
    local point = { x = i, y = i + 1 }
    sum = sum + point.x + point.y
end
print(sum)
