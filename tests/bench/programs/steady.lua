-- One compiled loop of arithmetic, no allocation: steady.lua [N]. Its runs differ less from one another than those of a
-- program that does something, so the cost of a tick shows in them.
local x = 1
for i = 1, tonumber(arg[1] or 1e8) do x = (x * 16807 + i) % 2147483647 end
print(x)
