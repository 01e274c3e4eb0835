-- Labels of the main coroutine and of others, changed, removed, inherited and of many short ones: labels.lua.
local ls = require "luasample"
local function loop(n)
        local x = 0
        for i = 1, n do x = x + i % 7 end
        return x
end
local function spin(ms)
        local e = os.clock() + ms / 1000
        repeat loop(20000) until os.clock() >= e
end
spin(30)                                                -- no labels
ls.mark("labels begin")
ls.label("route", "/list")
spin(60)
ls.label("route", "/item")
ls.label("frame", 7)
spin(60)
ls.label("frame", nil)
-- coroutines that take turns: each has its own route, and the user of who resumed them
ls.label("user", "ann")
local function turn(route)
        return coroutine.wrap(function()
                ls.label("route", route)
                for _ = 1, 6 do spin(10) coroutine.yield() end
                if route == "B" then ls.label("route") spin(60) end
        end)
end
local a, b = turn("A"), turn("B")
for _ = 1, 7 do a() b() end                             -- then B has what the main one has: /item
ls.label("user")
ls.label("route", nil)
spin(40)                                                -- no labels
-- far more coroutines than have room at a time, one after the other; the collector may not run
collectgarbage("stop")
for i = 1, 6000 do coroutine.wrap(function() ls.label("short", i % 3) end)() end
coroutine.wrap(function() ls.label("short", "last") spin(60) end)()
collectgarbage("restart")
collectgarbage()
spin(30)                                                -- no labels, whatever was at that address
ls.label({}, true) ls.label("k" .. 1, false) ls.label() ls.label("a\0b", "x\1y")
for i = 1, 20 do ls.label("many" .. i, i) end           -- eight at most
for i = 1, 20 do ls.label("many" .. i, nil) end
