-- Uses all of require "luasample" and says what it returned: api.lua. Each part burns its own function by the CPU clock.
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
local function zoned(ms, a, b) spin(ms) return a, b end
local function fails(ms) spin(ms) ls.zone_push "left over" error({ "raised" }) end
local function unzoned(ms) spin(ms) end
local function unseen(ms) spin(ms) end
local function pushed(ms) spin(ms) end
local function say(...) print("returned", select("#", ...), ...) end

say(ls.is_recording() and "recording" or "off")
say(ls.mark("begin \1"))
say(ls.zone("outer", zoned, 100, nil, "second"))
say(ls.zone("none"  , function() end))
local ok, err = pcall(ls.zone, "broken", fails, 60)
say(ok, type(err) == "table" and err[1])
unzoned(60)
say(ls.zone_pop())                                      -- there is none: nothing happens
say(ls.zone_push("pushed"))
pushed(60)
say(ls.zone_pop())
-- two coroutines that take turns keep their zones
local function turn(name)
        return coroutine.wrap(function()
                ls.zone(name, function()
                        for _ = 1, 6 do spin(10) coroutine.yield() end
                end)
                ls.zone_pop()
        end)
end
local a, b = turn("A"), turn("B")
for _ = 1, 7 do a() b() end
say(ls.label("key", "value"))
say(ls.label("key"))
say(ls.counter("in flight", 3))
say(ls.counter("in flight", 0 / 0))
say(ls.counter("in flight", "many"))
say(ls.counter("in flight"))
say(ls.pause())
unseen(80)
say(ls.is_recording())
say(ls.resume())
ls.mark(42)
say(ls.ready(coroutine.create(print)))
say(ls.ready(coroutine.create(print), false))
say(ls.ready(42))
say(ls.ready())
unzoned(40)
for _, name in ipairs { "start", "stop", "pause", "resume", "mark", "zone", "zone_push", "zone_pop", "label", "counter",
                "is_recording", "ready" } do
        assert(type(ls[name]) == "function", name)
end
