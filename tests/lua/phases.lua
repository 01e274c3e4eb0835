-- A program of phases, for the page: phases.lua [SECONDS [ZONE,...]]. Zones "load" (strings and C), "simulate" (compiled
-- numbers), "garbage" (the collector) and "serve" (coroutines), one after the other, each a quarter of the time; or only
-- those named.
local zone = require "jit.zone"
local total = tonumber(arg[1] or 2)

local function until_time(seconds, work)
        local stop = os.clock() + seconds
        while os.clock() < stop do work() end
end

local words = {}
local function split(text)
        local n = 0
        for word in text:gmatch("%a+") do
                n = n + 1
                words[n] = word:lower()
        end
        return n
end

local function load_text()
        local text = ("the Quick brown fox Jumps over the lazy dog "):rep(20)
        split(text)
        table.sort(words, function(a, b) return a < b end)
end

local function force(a, b)
        local dx, dy = a.x - b.x, a.y - b.y
        local d = dx * dx + dy * dy + 0.01
        return dx / d, dy / d
end

local bodies = {}
for i = 1, 40 do bodies[i] = { x = i % 7, y = i % 11, vx = 0, vy = 0 } end

local function advance(dt)
        for i = 1, #bodies do
                local a = bodies[i]
                for j = 1, #bodies do
                        local fx, fy = force(a, bodies[j])
                        a.vx, a.vy = a.vx - fx * dt, a.vy - fy * dt
                end
        end
        for _, b in ipairs(bodies) do b.x, b.y = b.x + b.vx * dt, b.y + b.vy * dt end
end

local function simulate()
        for _ = 1, 20 do advance(0.001) end
end

local kept = {}
local function make_tree(depth)
        if depth == 0 then return { depth } end
        return { make_tree(depth - 1), make_tree(depth - 1), name = "n" .. depth }
end

local function garbage()
        kept[#kept % 20 + 1] = make_tree(9)
end

local function client(id)
        local seen = 0
        while true do
                local request = coroutine.yield(seen)
                for i = 1, 300 do seen = (seen * 31 + request + i * id) % 65521 end
        end
end

local clients = {}
for i = 1, 50 do
        clients[i] = coroutine.create(client)
        coroutine.resume(clients[i], i)
end

local function serve()
        for i = 1, #clients do assert(coroutine.resume(clients[i], i)) end
end

local wanted = "," .. (arg[2] or "load,simulate,garbage,serve") .. ","
local function run(name, work)
        if not wanted:find("," .. name .. ",", 1, true) then return end
        zone(name)
        until_time(total / 4, work)
        zone()
end

run("load", load_text)
run("simulate", simulate)
run("garbage", garbage)
run("serve", serve)
