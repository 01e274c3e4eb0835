-- Lua functions that C calls back, one on one line, one with its return on a line of its own: callbacks.lua SECONDS
local objects = {}
for i = 1, 2000 do objects[i] = { tostring(i * 7919 % 2003), i % 50 } end

local function before(a, b) return a[2] > b[2] or a[2] == b[2] and a[1] < b[1] end
local function after(a, b)
        local x, y = a[2], b[2]
        local more = x < y or x == y and a[1] > b[1]
        return more
end

local stop = os.clock() + tonumber(arg[1])
while os.clock() < stop do
        for _, order in ipairs { before, after } do
                local t = {}
                for i = 1, #objects do t[i] = objects[i] end
                table.sort(t, order)
        end
end
