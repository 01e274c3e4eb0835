-- Work at a given depth under stacks that change from the root on: newstacks.lua DEPTH SECONDS. Four chains of
-- functions take turns of 1.1 ms, so that at 1 ms few samples share more than the main chunk with the one before.
local depth, seconds = tonumber(arg[1]), tonumber(arg[2] or 1)
local TURN = 0.0011
-- Small frames: LuaJIT's stack has 65500 slots.
local text = [[
        local clock, turn = ...
        local stop
        local function work(n)
                local x = 0
                for i = 1, n do x = x + i % 7 end
                return x
        end
        local function down(d)
                if d <= 0 then
                        stop = clock() + turn
                        while clock() < stop do work(5000) end
                        return 1
                end
                local x = down(d - 1)
                return x + 1
        end
        return down
]]
local chains = {}
for i = 1, 4 do chains[i] = assert(loadstring(text, "=chain" .. i))(os.clock, TURN) end
local stop, i = os.clock() + seconds, 0
while os.clock() < stop do
        i = i % #chains + 1
        chains[i](depth)
end
