-- Counts flushes of all traces: flushes.lua. A recorder must cause none while the program runs.
local flushes, traces = 0, 0
jit.attach(function(what)
        if what == "flush" then flushes = flushes + 1 elseif what == "stop" then traces = traces + 1 end
end, "trace")
local x, stop = 0, os.clock() + 1
while os.clock() < stop do for i = 1, 10000 do x = x + i % 7 end end
print(("flushes %d"):format(flushes))
