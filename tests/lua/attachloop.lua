-- attachloop.lua SECONDS [PIECES]: 70 parts of work in heavy and 30 in light, for so long or so many pieces; then says what came of it.
local function heavy(n) local x = 0 for i = 1, n do x = x + (i % 7) * 1.5 end return x end
local function light(n) local x = 0 for i = 1, n do x = x + (i % 7) * 1.5 end return x end

local seconds, pieces = tonumber(arg[1]), tonumber(arg[2] or math.huge)
local done, sum, start = 0, 0, os.time()
io.stdout:write("begin\n")
io.stdout:flush()
while done < pieces and os.time() - start < seconds do
  sum = sum + heavy(700000) - light(300000)
  done = done + 1
end
print(arg[2] and done or "done", arg[2] and sum or "")
