-- Loads 24 MB of different texts and one that is larger than a trace keeps of one; each runs for a while.
local chunks = {}
local filler = ("x"):rep(599900)
for i = 1, 40 do
        chunks[i] = assert(load(("local n, x = ..., %d\nfor i = 1, n do x = x + i %% 7 end\nreturn x\n-- "):format(i) .. filler))
end
chunks[41] = assert(load("local n, x = ..., 0\nfor i = 1, n do x = x + i % 7 end\nreturn x\n-- " .. filler .. filler))
collectgarbage "stop"
local function burn(f, seconds)
        local stop = os.clock() + seconds
        while os.clock() < stop do f(20000) end
end
for _, f in ipairs(chunks) do burn(f, 0.05) end
print "texts done"
