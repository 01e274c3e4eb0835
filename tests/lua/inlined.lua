-- Builtins that compiled code inlines to instructions, and one that it calls. For tests/integration/main/views.py.
local band, floor, byte = bit.band, math.floor, string.byte
local function inlines(n, text)
        local sum = 0
        for i = 1, n do
                sum = sum + band(i * 3, 1023) + floor(i / 3) + byte(text, i % 20 + 1)
        end
        return sum
end
local function calls(n, text)
        local sum = 0
        for i = 1, n do sum = sum + #text:rep(i % 5 + 20) end
        return sum
end
local stop = os.clock() + tonumber(arg[1] or "0.6")
local text = ("abcdefghij"):rep(3)
while os.clock() < stop do
        inlines(3e5, text)
        calls(3e3, text)
end
