local x = 0 for i = 1, 1e8 do x = x + i % 7 end
for i = 1, 1e8 do x = x + i % 5 end
local done = true
print(done)
