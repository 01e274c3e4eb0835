-- Integer work: bit operations, overflow-checked counters, math functions.
local bit = require("bit")
local band, bor, bxor, lshift, rshift, rol, bnot, bswap = bit.band, bit.bor, bit.bxor, bit.lshift, bit.rshift, bit.rol,
        bit.bnot, bit.bswap
local function mix(h, k)
        k = rol(k * 3, 15)
        h = bxor(h, k)
        h = rol(h, 13)
        h = band(h * 5 + 1, 0x7fffffff)
        return h
end
local function fold(h)
        h = bxor(h, rshift(h, 16))
        h = bor(lshift(h, 3), rshift(h, 29))
        h = bswap(bnot(h))
        return h
end
local function measure(h)
        local d = math.sqrt(math.abs(h)) + math.floor(h / 3) + math.max(h, 17) - math.min(h, 4)
        d = d + math.sin(h) * 2 ^ 0.5
        return math.fmod(d, 7)
end
local h, d, stop = 1, 0, os.clock() + tonumber(arg[1])
while os.clock() < stop do
        for i = 1, 20000 do
                h = mix(h, i)
                h = fold(h)
                if i % 4 == 0 then d = d + measure(h) end
        end
end
