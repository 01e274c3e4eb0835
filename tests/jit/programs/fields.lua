-- Fields and array elements through three inlined accessors.
local items = {}
for i = 1, 1024 do items[i] = { x = i, y = i * 2, z = i * 3, after = (i * 7) % 1024 + 1 } end
local function sum(o)
        local s = o.x
        s = s + o.y
        s = s + o.z
        return s
end
local function following(o)
        return items[o.after]
end
local function put(o, v)
        o.x = v % 1000
        o.y = v % 77
end
local total, stop = 0, os.clock() + tonumber(arg[1])
while os.clock() < stop do
        local o = items[1]
        for i = 1, 20000 do
                total = total + sum(o)
                put(o, i)
                o = following(o)
        end
end
