local x = 0
for i = 1, 1e9 do x = x + i end
print(x)



print("cold")
