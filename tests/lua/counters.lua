-- Counters: one that changes all the time, a few values that are told apart, what is no value, a hostile name.
local ls = require "luasample"
local n, e = 0, os.clock() + 0.4
repeat
        n = n + 1
        ls.counter("loop", n)
until os.clock() >= e
for i = 1, 3 do
        ls.counter("queue", i)
        local t = os.clock() + 0.02
        repeat until os.clock() >= t
end
ls.counter("queue", 0.5)                                -- right behind another: the last one stays
ls.counter("queue", -7.25)
ls.counter("huge", -1e308)
ls.counter("huge", 1e308)
ls.counter("</script>\27[31m\0x", 1)
for _, no in ipairs { 0 / 0, 1 / 0, -1 / 0, "many", false } do ls.counter("none", no) end
for i = 1, 200 do ls.counter("many " .. i, i) end       -- more than there may be
ls.counter(("long"):rep(1000), 1)
print(n)
