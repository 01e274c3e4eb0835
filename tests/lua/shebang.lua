#!/usr/bin/env luajit
local x, stop = 0, os.clock() + 0.4
local function in_script()
        for i = 1, 10000 do x = x + i % 7 end
end
while os.clock() < stop do in_script() end
print("shebang done", ...)
