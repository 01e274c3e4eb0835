-- One VM state each: vmstates.lua STATE [SECONDS]; STATE is native, interpreted, c, gc or jit.
local state, stop = arg[1], os.clock() + tonumber(arg[2] or 0.8)
local run = {}

function run.native()
        local x = 0
        for i = 1, 1e6 do x = x + i % 7 end
        return x
end

function run.interpreted()
        local x = 0
        for i = 1, 1e5 do x = x + i % 7 end
        return x
end

local hay = ("a"):rep(300)
function run.c()
        return hay:find(".-.-b")
end

local keep = {}
function run.gc()
        collectgarbage("collect")
end

local body = {}
for i = 1, 300 do body[i] = ("x = (x * %d + y) %% 1000003 y = y + x / %d"):format(i, i + 1) end
local compiled = "return function() local x, y = 1, 2 for i = 1, 4 do " .. table.concat(body, "\n") .. " end return x + y end"
function run.jit()
        jit.flush()
        load(compiled)()()
end

if state == "interpreted" or state == "c" then jit.off() end
if state == "gc" then for i = 1, 3e5 do keep[i] = { i } end end
if state == "jit" then jit.opt.start("hotloop=1", "maxrecord=20000", "maxirconst=5000", "maxmcode=8192", "sizemcode=256") end
while os.clock() < stop do run[state]() end
