-- Bodies that attract each other: nbody.lua [STEPS]. Floating point in tables.
local function body(x, y, z, vx, vy, vz, mass)
        return { x = x, y = y, z = z, vx = vx, vy = vy, vz = vz, mass = mass }
end

local function advance(bodies, n, dt)
        for i = 1, n do
                local a = bodies[i]
                for j = i + 1, n do
                        local b = bodies[j]
                        local dx, dy, dz = a.x - b.x, a.y - b.y, a.z - b.z
                        local d2 = dx * dx + dy * dy + dz * dz
                        local mag = dt / (d2 * math.sqrt(d2))
                        a.vx = a.vx - dx * b.mass * mag
                        a.vy = a.vy - dy * b.mass * mag
                        a.vz = a.vz - dz * b.mass * mag
                        b.vx = b.vx + dx * a.mass * mag
                        b.vy = b.vy + dy * a.mass * mag
                        b.vz = b.vz + dz * a.mass * mag
                end
        end
        for i = 1, n do
                local a = bodies[i]
                a.x, a.y, a.z = a.x + dt * a.vx, a.y + dt * a.vy, a.z + dt * a.vz
        end
end

local function energy(bodies, n)
        local e = 0
        for i = 1, n do
                local a = bodies[i]
                e = e + 0.5 * a.mass * (a.vx ^ 2 + a.vy ^ 2 + a.vz ^ 2)
                for j = i + 1, n do
                        local b = bodies[j]
                        e = e - a.mass * b.mass / math.sqrt((a.x - b.x) ^ 2 + (a.y - b.y) ^ 2 + (a.z - b.z) ^ 2)
                end
        end
        return e
end

local bodies = { body(0, 0, 0, 0, 0, 0, 40) }
for i = 1, 6 do
        local r, v = 3 * i + 2, 2.4 / math.sqrt(i)
        bodies[#bodies + 1] = body(r * math.cos(i), r * math.sin(i), 0.1 * i, -v * math.sin(i), v * math.cos(i), 0, 0.01 / i)
end
local steps = tonumber(arg[1] or 1e6)
for i = 1, steps do
        advance(bodies, #bodies, 0.001)
        if i % 50000 == 0 then energy(bodies, #bodies) end
end
print(("energy %.6f"):format(energy(bodies, #bodies)))
