-- Marks the regions to record: regions.lua [SECONDS]. Outside of luasample these calls do nothing.
local ok, ls = pcall(require, "luasample")
if not ok then ls = { start = function() end, stop = function() end } end
print("module", ok)
local function inside(n)
        local x = 0
        for i = 1, n do x = x + i % 7 end
        return x
end
local function outside(n)
        local x = 0
        for i = 1, n do x = x + i % 5 end
        return x
end
local function spin(f, s)
        local stop = os.clock() + s
        while os.clock() < stop do f(20000) end
end
local s = tonumber(arg[1] or 0.4)
spin(outside, s)
ls.start { name = "first" }
spin(inside, s)
ls.stop()
spin(outside, s)
ls.start()
spin(inside, s)
ls.stop()
ls.stop()
spin(outside, s)
