-- luasample's zone calls in a hot loop: prints how many traces and aborts the compiler made of it, as zonehot.lua does.
-- arg[1]: functions to make before, since LuaJIT's hot counters are shared by what lies a multiple of 256 bytes apart.
local before = {}
for i = 1, tonumber(arg[1]) or 0 do before[i] = loadstring("return " .. i) end
local ls = require "luasample"
local traces, aborts = 0, 0
jit.attach(function(what)
        if what == "stop" then traces = traces + 1 elseif what == "abort" then aborts = aborts + 1 end
end, "trace")
local x = 0
for i = 1, 3e6 do
        ls.zone_push "hot"
        x = x + i % 7
        ls.zone_pop()
end
jit.attach(function() end)
print(("traces %d aborts %d x %d"):format(traces, aborts, x))
