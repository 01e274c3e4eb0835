-- Tables that grow, shrink, are walked, and have metamethods; closures and varargs.
local function build(n)
        local t = {}
        for i = 1, n do
                t[#t + 1] = i
        end
        t.first, t.last = t[1], t[n]
        return t
end
local function walk(t)
        local s = 0
        for _, v in ipairs(t) do
                s = s + v
        end
        for k, v in pairs(t) do
                if k == "last" then s = s + v end
        end
        return s
end
local Vector = {}
Vector.__index = Vector
function Vector.__add(a, b) return setmetatable({ x = a.x + b.x, y = a.y + b.y }, Vector) end
function Vector.__eq(a, b) return a.x == b.x and a.y == b.y end
local function add(n)
        local a, b = setmetatable({ x = 1, y = 2 }, Vector), setmetatable({ x = 3, y = 5 }, Vector)
        for _ = 1, n do
                a = a + b
        end
        return a.x
end
local function counter()
        local n = 0
        return function(by) n = n + by return n end
end
local function pick(...)
        local a, b, c = ...
        return select("#", ...) + a * b % 7 + c
end
local count = counter()
local s, stop = 0, os.clock() + tonumber(arg[1])
while os.clock() < stop do
        for i = 1, 20 do
                local t = build(200)
                s = s + walk(t)
                s = s + add(100)
                table.insert(t, i)
                table.remove(t)
                for k = 1, 100 do
                        s = s + count(k) % 3
                        s = s + pick(i, k, s % 5)
                end
        end
end
