local x = 0
for i = 1, 1.5e8 do
        x = x + i % 7
end
print(x > 0)
