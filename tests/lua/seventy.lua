-- Two functions, 70/30 of the time, in many turns: seventy.lua [SECONDS [FILE]]. Prints "seventy done"; the CPU time that
-- each function had, in seconds, goes to FILE. The turns are never of one length: with a round of 1 ms ticks of 1 ms meet the
-- same places again and again, and mul had 66 %. And they are longer than the ticks' distance: few ticks are near an end.
local function mul(n)
        local x = 1
        for i = 1, n do x = x * 1.0000001 + i % 7 end
        return x
end
local function add(n)
        local x = 1
        for i = 1, n do x = x * 1.0000001 + i % 7 end
        return x
end
local seed = 7
local function vary(n)                  -- n times 0.4 to 1.6
        seed = (seed * 16807) % 2147483647
        return math.floor(n * (0.4 + 1.2 * seed / 2147483647))
end
local clock, file = os.clock, arg and arg[2]
local begin, in_mul, in_add = clock(), 0, 0
local stop = begin + tonumber(arg and arg[1] or 1)
while clock() < stop do
        local t = clock()
        for i = 1, 7 do mul(vary(200000)) end
        local t1 = clock()
        for i = 1, 3 do add(vary(200000)) end
        in_mul, in_add = in_mul + t1 - t, in_add + clock() - t1
end
if file then
        file = assert(io.open(file, "w"))
        file:write(("mul %.6f\nadd %.6f\nall %.6f\n"):format(in_mul, in_add, clock() - begin))
        file:close()
end
print("seventy done")
