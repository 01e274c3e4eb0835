-- Loops with an inlined callee, a branch in it, and an inner loop that is unrolled.
local function square(v) return v * v + 1 end
local function bounded(v)
        if v > 1000 then
                v = v % 1000
        end
        return v
end
local function dot(a, b, n)
        local s = 0
        for i = 1, n do
                s = s + a[i] * b[i]
                s = bounded(s)
        end
        return s
end
local function fill(a, n)
        for i = 1, n do
                local v = 0
                for k = 1, 3 do
                        v = v + square(i + k) % 17
                end
                a[i] = v
        end
end
local A, B, r, stop = {}, {}, 0, os.clock() + tonumber(arg[1])
while os.clock() < stop do
        fill(A, 500)
        fill(B, 500)
        for _ = 1, 10 do r = r + dot(A, B, 500) end
end
