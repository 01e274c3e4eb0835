-- Strings made, joined, cut, compared and turned into numbers.
local function key(i)
        return "k" .. (i % 1000)
end
local function join(a, b)
        return a .. "/" .. b
end
local function measure(s)
        local n = 0
        n = n + s:byte(1)
        n = n + #s
        n = n + s:sub(2, 3):byte(1)
        return n
end
local function number(s)
        local n = tonumber(s:sub(2))
        if s == "k17" then n = n + 1 end
        return n
end
local n, stop = 0, os.clock() + tonumber(arg[1])
while os.clock() < stop do
        for i = 1, 5000 do
                local k = key(i)
                local j = join(k, "tail")
                n = n + measure(j)
                n = n + number(k)
                n = n + #tostring(i * 0.5)
                n = n + #string.format("%d:%s", i, k)
        end
end
