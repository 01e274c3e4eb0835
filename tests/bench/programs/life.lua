-- Conway's game on a torus: life.lua [GENERATIONS]. Nested arrays, short functions, some text.
local function grid(w, h)
        local g = { w = w, h = h }
        for y = 1, h do
                g[y] = {}
                for x = 1, w do g[y][x] = 0 end
        end
        return g
end

local function neighbours(g, x, y)
        local l, r = x > 1 and x - 1 or g.w, x < g.w and x + 1 or 1
        local up, row, down = g[y > 1 and y - 1 or g.h], g[y], g[y < g.h and y + 1 or 1]
        return up[l] + up[x] + up[r] + row[l] + row[r] + down[l] + down[x] + down[r]
end

local function rule(alive, n)
        if n == 3 or (n == 2 and alive == 1) then return 1 end
        return 0
end

local function step(from, to)
        for y = 1, from.h do
                local row, out = from[y], to[y]
                for x = 1, from.w do out[x] = rule(row[x], neighbours(from, x, y)) end
        end
end

local function show(g)
        local lines = {}
        for y = 1, g.h do
                local line = {}
                for x = 1, g.w do line[x] = g[y][x] == 1 and "#" or "." end
                lines[y] = table.concat(line)
        end
        return table.concat(lines, "\n")
end

local function living(g)
        local n = 0
        for y = 1, g.h do for x = 1, g.w do n = n + g[y][x] end end
        return n
end

local a, b = grid(80, 60), grid(80, 60)
local seed = 7
for y = 1, a.h do
        for x = 1, a.w do
                seed = (seed * 1103515245 + 12345) % 2147483648
                a[y][x] = seed > 1500000000 and 1 or 0
        end
end
local last
for i = 1, tonumber(arg[1] or 4000) do
        step(a, b)
        a, b = b, a
        if i % 10 == 0 then last = show(a) end
end
print("living", living(a), #last)
