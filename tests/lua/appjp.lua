-- Runs LuaJIT's own profiler around work of 70/30, as an application may, eight times: appjp.lua OUTFILE [SECONDS]. Its results
-- are OUTFILE1 and so on; prints the CPU seconds of each.
local function mul(n)
        local x = 1
        for i = 1, n do x = x * 1.0000001 + i % 7 end
        return x
end
local function add(n)
        local x = 1
        for i = 1, n do x = x * 1.0000001 + i % 7 end
        return x
end
local function spin(s)
        local stop = os.clock() + s
        while os.clock() < stop do
                for i = 1, 7 do mul(20000) end
                for i = 1, 3 do add(20000) end
        end
end
spin(0.4)
for i = 1, 8 do
        package.loaded["jit.p"] = nil           -- it does not begin again with another file
        local p = require "jit.p"
        local start = os.clock()
        p.start("fi10m1r", arg[1] .. i)
        spin(tonumber(arg[2] or 3) / 8)
        p.stop()
        print(("cpu %.6f"):format(os.clock() - start))
end
spin(0.4)
print("appjp done")
