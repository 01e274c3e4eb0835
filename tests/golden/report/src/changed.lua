local y = 1
for i = 1, 10 do
  y = y * i
end
