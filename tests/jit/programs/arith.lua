-- Straight-line arithmetic in two inlined functions.
local function heavy(a)
        a = (a * 7 + 3) % 1000003
        a = (a * 5 + 1) % 1000003
        a = (a * 3 + 7) % 1000003
        a = (a * 9 + 1) % 1000003
        a = (a * 11 + 5) % 1000003
        a = (a * 13 + 5) % 1000003
        return a
end
local function light(a)
        a = (a * 7 + 9) % 1000003
        a = (a * 5 + 4) % 1000003
        return a
end
local x, stop = 0, os.clock() + tonumber(arg[1])
while os.clock() < stop do
        for _ = 1, 20000 do
                x = heavy(x)
                x = light(x)
        end
end
