-- One kind of work: kinds.lua KIND SECONDS, where KIND is arithmetic, allocation, files or osclock. Prints its CPU
-- time, and how much of it was before this line.
local begin = os.clock()
local kind, stop = arg[1], begin + tonumber(arg[2] or 2)
local kinds = {}

function kinds.arithmetic()
        local x = 0
        for i = 1, 1e5 do x = x + i % 7 end
        return x
end

function kinds.allocation()
        local t
        for i = 1, 3000 do t = { i, { i, tostring(i) } } end
        return t
end

function kinds.files()
        local n = 0
        for i = 1, 20 do
                local f = assert(io.open("/proc/self/maps"))
                n = n + #f:read("*a")
                f:close()
                f = assert(io.open("/dev/zero"))
                n = n + #f:read(65536)
                f:close()
        end
        return n
end

function kinds.osclock()
        for i = 1, 1000 do os.clock() end
end

local work = kinds[kind]
while os.clock() < stop do work() end
print(("cpu %.6f begin %.6f"):format(os.clock(), begin))
