-- jit.zone as its documentation says (asserts), then zones with known shares: zones.lua [SECONDS].
local zone = require "jit.zone"
assert(zone "A" == nil)
assert(zone:get() == "A")
assert(zone "B" == nil)
assert(zone:get() == "B")
assert(zone() == "B")
assert(zone() == "A")
assert(zone:get() == nil)
local ok, err = pcall(zone)
assert(not ok and err:find("empty zone stack", 1, true), err)
zone "X" zone "Y"
zone:flush()
assert(zone:get() == nil)
ok = pcall(function() zone "left" error "out" end)
assert(not ok and zone:get() == "left")
assert(zone() == "left")
print("zone semantics hold")

local function work(n)
        local x = 0
        for i = 1, n do x = x + i % 7 end
        return x
end
local stop = os.clock() + tonumber(arg[1] or 1)
while os.clock() < stop do
        work(20000)             -- (none) 20 %
        zone "AI"
        work(30000)             -- AI 30 %
        zone "A*"
        work(50000)             -- AI;A* 50 %
        zone()
        zone()
end
