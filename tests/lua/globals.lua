-- A global table of a million entries, and the longest pause of a loop beside it: prints max_pause_us N.
-- While names are searched for new functions, no stall of over 1 ms may come from that.
local ffi = require "ffi"
ffi.cdef [[
typedef struct { long sec, nsec; } gt_timespec;
int clock_gettime(int clock, gt_timespec *ts);
]]
local ts = ffi.new "gt_timespec"
local function now(clock)
        ffi.C.clock_gettime(clock, ts)
        return tonumber(ts.sec) * 1e6 + tonumber(ts.nsec) / 1e3
end
big = {}
for i = 1, 1e6 do big["k" .. i] = i end
for i = 1, 2000 do _G["g" .. i] = { i } end
setmetatable(big, { __index = function() error("a metamethod was called") end,
                    __pairs = function() error("a metamethod was called") end })
collectgarbage("collect")
collectgarbage("stop")
local makers = {}
for i = 1, 400 do
        makers[i] = load(("return function(n) local x = %d for i = 1, n do x = x + i %% 7 end return x end"):format(i))()
end
local worst, list = 0, {}
for i = 1, 400 do
        local f = makers[i]
        for k = 1, 40 do
                local c = now(3)
                f(3000)
                list[#list + 1] = now(3) - c
        end
end
table.sort(list)
print(("max_pause_us %.1f p999_us %.1f median_us %.1f"):format(list[#list], list[math.floor(#list * 0.999)], list[math.floor(#list / 2)]))
