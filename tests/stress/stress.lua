-- What a profiler of LuaJIT must survive, as parts that each return a number which depends on the round alone:
--
--   luajit stress.lua ROUNDS [PART...]
--
-- Run by tests/stress/run.py, and by the hosts there, which add parts of their own (host_parts, host_after). Prints
-- "round part number" on stdout; "use round private-KiB descriptors live-KiB" on stderr after each round, and "cpu seconds" at the end.
local ffi, bit = require "ffi", require "bit"

-- A sequence of numbers that each part starts anew.
local seed = 1
local function random(n)
        seed = (seed * 16807) % 2147483647
        return seed % n + 1
end

local sum                               -- of what a part computes
local function mix(v)
        if type(v) == "string" then
                local h = #v
                for i = 1, #v, #v > 64 and 7 or 1 do h = (h * 31 + v:byte(i)) % 16777213 end
                v = h
        end
        sum = (sum * 33 + v % 16777213) % 16777213
end

local parts = {}
local function part(name, fn) parts[#parts + 1] = { name = name, run = fn } end

-- Garbage of all kinds, finalizers that work, steps of the collector at odd moments.
part("gc", function()
        local finalized, cfinalized = 0, 0
        local weak = setmetatable({}, { __mode = "v" })
        collectgarbage("setpause", 110)
        collectgarbage("setstepmul", 300)
        for i = 1, 2000 do
                local t = {}
                for j = 1, 40 do t[j] = { j, tostring(j), function() return j + i end } end
                weak[i] = t[3]
                local p = newproxy(true)
                getmetatable(p).__gc = function() finalized = finalized + 1; local x = {} for k = 1, 5 do x[k] = { k } end end
                ffi.gc(ffi.new("int[16]"), function(c) cfinalized = cfinalized + 1; c[0] = i end)
                if i % 20 == 0 then collectgarbage("step", random(50)) end
                mix(t[random(40)][3]())
        end
        collectgarbage() collectgarbage()
        collectgarbage("setpause", 200)
        collectgarbage("setstepmul", 200)
        mix(finalized) mix(cfinalized)
end)

-- Stacks that grow a hundredfold and shrink again; overflows that are caught.
local function down(n) if n == 0 then return 0 end return 1 + down(n - 1) end
local function wide(n, ...)
        if n == 0 then return select("#", ...) end
        return 1 + wide(n - 1, n, ...)
end
part("deep", function()
        for _ = 1, 60 do
                mix(coroutine.wrap(function() return down(5000 + random(5000)) end)())
                mix(coroutine.wrap(function() return wide(100) end)())
                mix(#{ coroutine.wrap(function() return unpack({}, 1, 5000 + random(2000)) end)() })
                collectgarbage("step", 20)
        end
        local function forever(n) return 1 + forever(n + 1) end
        local ok, why = pcall(forever, 1)
        mix(ok and 1 or 0) mix(tostring(why):match("stack overflow") or "none")
        mix(select(2, pcall(string.rep, "x", -1)))
        local t = setmetatable({}, { __index = function(t, k) return t[k + 1] end })
        mix(pcall(function() return t[1] end) and 1 or 0)
        local nested = 0
        local function through(n) nested = n; if n < 150 then pcall(string.gsub, "x", "x", function() through(n + 1) end) end end
        through(1)
        mix(nested)
end)

-- Errors at a high rate: through pcall, xpcall, C functions, metamethods, compiled code, coroutines.
part("errors", function()
        local function fail(v) error(v, 0) end
        local function risky(i) if i % 3 == 0 then fail(i) elseif i % 7 == 0 then local x = nil; return x.y end return i end
        local caught = 0
        for i = 1, 30000 do
                local ok, v = pcall(risky, i)
                if not ok then caught = caught + 1 elseif i % 100 == 1 then mix(v) end
        end
        mix(caught)
        for i = 1, 1500 do
                local _, v = xpcall(fail, function(e) return tostring(e) .. #debug.traceback("t", 1):sub(1, 1) end, i)
                mix(v)
                mix(pcall(table.sort, { 3, 1, 2, 5, 4 }, function(a, b) if a == 5 or b == 5 then error("cmp") end return a < b end) and 1 or 0)
                mix(pcall(string.gsub, "abc", "%w", function(c) if c == "c" then error({}) end end) and 1 or 0)
                mix(select(2, pcall(setmetatable({}, { __add = function() error("add", 0) end }).x, 1)))
                mix(select("#", pcall(function(...) return pcall(error, ...) end, nil)))
        end
end)

-- Coroutines that are made, resumed, left, killed by errors and nested.
part("coroutines", function()
        local live = {}
        for i = 1, 12000 do
                local co = coroutine.create(function(a)
                        for k = 1, random(6) do a = a + coroutine.yield(a + k) end
                        if a % 5 == 0 then error("dead", 0) end
                        return a
                end)
                live[i % 50 + 1] = co
                for _ = 1, random(4) do
                        local other = live[random(50)]
                        if other and coroutine.status(other) == "suspended" then
                                local ok, v = coroutine.resume(other, i)
                                mix(ok and v or 7)
                        end
                end
        end
        local function nest(n)
                if n == 0 then coroutine.yield(1) return 2 end
                local f = coroutine.wrap(function() return nest(n - 1) end)
                local v = f()
                coroutine.yield(v)
                return f and n or 0
        end
        for _ = 1, 200 do
                local f = coroutine.wrap(function() return nest(30) end)
                mix(f()) mix(f() or 3)
        end
        local step = coroutine.wrap(function()
                while true do
                        pcall(function() coroutine.yield(1) error("x") end)
                        xpcall(function() coroutine.yield(2) error("y") end, function() return 1 end)
                        for v in coroutine.wrap(function() for k = 1, 3 do coroutine.yield(k) end end) do mix(v) end
                end
        end)
        for _ = 1, 6000 do mix(step()) end
end)

-- C that calls back into Lua, made and freed all the time.
ffi.cdef [[
        void qsort(void *base, size_t n, size_t size, int (*compare)(const int *, const int *));
        int fcntl(int fd, int command, ...);
        size_t strlen(const char *);
]]
part("ffi", function()
        local function sort(n)
                local a = ffi.new("int[?]", n)
                for i = 0, n - 1 do a[i] = random(100000) end
                local compare = ffi.cast("int (*)(const int *, const int *)", function(x, y) return x[0] - y[0] end)
                ffi.C.qsort(a, n, 4, compare)
                compare:free()
                for i = 1, n - 1 do assert(a[i - 1] <= a[i]) end
                return a[random(n) - 1]
        end
        jit.off(sort)
        for _ = 1, 60 do mix(sort(200 + random(200))) end
        local s = ffi.new("struct { int a; double b[4]; }[64]")
        for i = 1, 300000 do
                local e = s[i % 64]
                e.a = e.a + i
                e.b[i % 4] = e.b[i % 4] + e.a % 16
                if i % 3000 == 0 then mix(e.b[i % 4] + tonumber(ffi.C.strlen("four"))) end
        end
end)

-- The compiler turned on and off, traces flushed while code runs that was compiled, hot counters that are low.
part("jit", function()
        local function work(n) local x = 0 for i = 1, n do x = (x * 5 + i) % 8191 if x % 3 == 0 then x = x + #tostring(x) end end return x end
        jit.opt.start("hotloop=3", "hotexit=2")
        for i = 1, 600 do
                mix(work(300))
                if i % 3 == 0 then jit.flush() end
                if i % 7 == 0 then jit.off() mix(work(200)) jit.on() end
                if i % 5 == 0 then jit.off(work, true) mix(work(100)) jit.on(work, true) end
                local f = loadstring("local n = ... local s = 0 for i = 1, n do s = s + i % " .. i .. " end return s", "=jit" .. i)
                mix(f(400))
                if i % 11 == 0 then jit.flush(f, true) end
        end
        local function watch() end
        jit.attach(watch, "trace")
        jit.attach(watch, "record")
        for _ = 1, 4 do jit.flush() mix(work(500)) end
        jit.attach(watch)
        jit.opt.start("hotloop=56", "hotexit=10")
end)

-- Tables that are rehashed, shrunk and walked; strings of all sizes.
part("tables", function()
        for i = 1, 40 do
                local t, keys = {}, {}
                for j = 1, 1200 do
                        local k = random(4) == 1 and j or random(4) == 1 and j + 0.5 or "k" .. random(3000)
                        t[k] = j
                        keys[#keys + 1] = k
                end
                for j = 1, #keys, 2 do t[keys[j]] = nil end
                local n = 0
                for _, v in pairs(t) do n = n + v end
                mix(n)
                local a = {}
                for j = 1, 300 do table.insert(a, random(#a + 1), j) end
                for _ = 1, 200 do mix(table.remove(a, random(#a))) end
                table.sort(a, function(x, y) return x > y end)
                mix(table.concat(a, ","))
        end
end)
part("strings", function()
        local text = {}
        for i = 1, 300 do text[i] = ("word%d of %q"):format(random(900), string.rep(string.char(64 + i % 26), random(20))) end
        text = table.concat(text, " ")
        for i = 1, 25 do
                mix((text:gsub("%w+", function(w) return #w > 4 and w:upper() or nil end)))
                mix((text:gsub("(%w+) (%w+)", "%2 %1")))
                mix(text:rep(i):reverse())
                local acc = ""
                for w in text:gmatch("%a+") do acc = acc .. w:sub(1, 1) end
                mix(acc)
                mix(("%5.2f|%08x|%s"):format(i * 1.5, i, acc:lower()))
                mix(text:find("nothing like this", 1, true) or 0)
        end
end)

-- Many chunks, most of them seen once, some of them wrong.
part("chunks", function()
        for i = 1, 2500 do
                local src = ("local a = %d local function f%d(x) return x * a + %d end local t = {} for i = 1, 10 do t[i] = f%d(i) end return t[10]%s")
                        :format(i, i, random(100), i, i % 17 == 0 and " =" or "")
                local f = loadstring(src, i % 2 == 0 and "@chunk" .. i .. ".lua" or src)
                mix(f and f() or 5)
                if f and i % 9 == 0 then mix(#string.dump(f) > 20 and load(string.dump(f, true))() or 0) end
        end
        mix(load(coroutine.wrap(function() for i = 1, 300 do coroutine.yield("local x" .. i % 100 .. " = " .. i .. " ") end coroutine.yield(nil) end)) and 1 or 2)
end)

-- Zones over yields, errors and coroutines that never end.
part("zones", function()
        local zone = require "jit.zone"
        local cos = {}
        for i = 1, 40 do
                cos[i] = coroutine.wrap(function()
                        for k = 1, 200 do
                                zone("zone" .. i % 9)
                                local x = 0
                                for j = 1, 150 do x = x + j % k end
                                coroutine.yield(x)
                                if k % 2 == 0 then pcall(zone) end           -- may have been flushed
                        end
                end)
        end
        for k = 1, 190 do
                for i = 1, 40 do mix(cos[i]()) end
                if k % 10 == 0 then zone:flush() end
        end
        zone:flush()
        mix(pcall(zone) and 1 or 2)
end)

-- The program's own profilers and hooks.
part("jp", function()
        local function work() local t = {} for i = 1, 4000 do t[i % 100 + 1] = { i } end return #t end
        for i = 1, 3 do
                local jp = require "jit.p"
                jp.start(i == 1 and "fi1" or i == 2 and "li1" or "vi1", "/dev/null")
                for _ = 1, 25 do mix(work()) end
                jp.stop()
                collectgarbage()                -- jit.p's finalizer would end the profile after this one too, or break it
                local profile = require "jit.profile"
                profile.start("li1", function(th, n) profile.dumpstack(th, "pl;", 3) end)
                for _ = 1, 25 do mix(work()) end
                profile.stop()
        end
end)
part("hooks", function()
        local n = 0
        debug.sethook(function() n = n + 1; debug.getinfo(2, "Sl") end, "crl", 1000)
        for i = 1, 30 do mix(down(50 + i)) end
        debug.sethook()
        jit.flush()
        mix(n > 0 and 1 or 0)
        for i = 1, 200 do mix(debug.traceback("x"):match("stack") or "") end
end)

-- The process's size, from Linux: private memory (the recorder's is shared), descriptors, Lua's.
local function use()
        local f = io.open("/proc/self/status")
        local anon = tonumber(f:read("*a"):match("RssAnon:%s*(%d+)"))
        f:close()
        local fds = 0
        for fd = 0, 1023 do if ffi.C.fcntl(fd, 1) >= 0 then fds = fds + 1 end end
        return anon, fds, collectgarbage("count")
end

for _, p in ipairs(host_parts or {}) do parts[#parts + 1] = p end

local rounds = tonumber((...)) or 1
local wanted = {}
for i = 2, select("#", ...) do wanted[select(i, ...)] = true end
local PERIOD = 4                        -- rounds that differ

io.stdout:setvbuf("line")
for round = 1, rounds do
        for _, p in ipairs(parts) do
                if not next(wanted) or wanted[p.name] then
                        sum, seed = 0, (round - 1) % PERIOD * 1000 + 4711
                        local result = p.run((round - 1) % PERIOD + 1)
                        print(round, p.name, result or sum)
                end
        end
        collectgarbage() collectgarbage()
        io.stderr:write(("use %d %d %d %d\n"):format(round, use()))
end
io.stderr:write(("cpu %.6f\n"):format(os.clock()))
