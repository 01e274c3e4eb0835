-- In how many pieces LuaJIT's heap lies, after some loops were compiled: heappieces.lua. LuaJIT joins memory that the kernel
-- gives it side by side, and so does the kernel in /proc/self/maps.
local last
for i = 1, 40 do
        local f = loadstring(("local last = ... for i = 1, 500 do last = { last, i + %d } end return last"):format(i))
        last = f(last)
end

local pieces, n, seen = {}, 0, {}
for line in io.lines("/proc/self/maps") do
        local from, to = line:match("^(%x+)-(%x+)")
        pieces[#pieces + 1] = { tonumber(from, 16), tonumber(to, 16) }
end
while last do
        local at = tonumber(("%p"):format(last):match("%x+$"), 16)
        for i = 1, #pieces do
                if at >= pieces[i][1] and at < pieces[i][2] and not seen[i] then
                        seen[i] = true
                        n = n + 1
                end
        end
        last = last[1]
end
print(("pieces %d"):format(n))
