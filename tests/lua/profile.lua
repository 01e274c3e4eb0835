-- jit.profile as its documentation says: profile.lua CASE. Prints what a check can compare with and without a recorder, and
-- lines `window SAMPLES CPU_SECONDS`, whose rate it can compare.
local profile = require "jit.profile"
local case = arg[1]
local function spin(s)
        local stop, x = os.clock() + s, 0
        while os.clock() < stop do for i = 1, 10000 do x = x + i % 7 end end
        return x
end
local function windows(count, work)
        local before, start = count(), os.clock()
        for _ = 1, 8 do
                work()
                local n, now = count(), os.clock()
                print(("window %d %.6f"):format(n - before, now - start))
                before, start = n, now
        end
end
local cases = {}

function cases.PF01()
        local n = 0
        profile.start("fli10QW", function() n = n + 1 end)      -- unknown letters are ignored
        windows(function() return n end, function() spin(0.15) end)
        profile.stop()
        print(pcall(profile.start, "f"))
end

function cases.PF02()
        local types, states = {}, {}
        profile.start("li10", function(thread, samples, vmstate)
                types[type(thread) .. " " .. type(samples) .. " " .. type(vmstate)] = true
                states[vmstate] = true
        end)
        spin(1)
        profile.stop()
        for t in pairs(types) do print(t) end
        local known = next(states) ~= nil
        for s in pairs(states) do known = known and ("NICGJ"):find(s, 1, true) ~= nil end
        print("states", known)
end

function cases.PF03()                   -- long C calls delay the callback; the sum holds
        jit.off()
        local total, most = 0, 0
        local hay = ("a"):rep(400)
        profile.start("i10", function(_, samples) total = total + samples most = math.max(most, samples) end)
        windows(function() return total end, function()
                local start = os.clock()
                while os.clock() - start < 0.25 do hay:find(".-.-b") end
        end)
        profile.stop()
        print("delayed", most > 1)
end

function cases.PF04()                   -- the state is that of the timer instant: C, though the callback runs in Lua
        jit.off()
        local hay, c, all = ("a"):rep(400), 0, 0
        profile.start("i10", function(_, samples, vmstate) all = all + samples if vmstate == "C" then c = c + samples end end)
        local stop = os.clock() + 1
        while os.clock() < stop do hay:find(".-.-b") end
        profile.stop()
        print("C", c / all > 0.9)
end

function cases.PF05()
        profile.start("i10", function() error("in callback") end)
        spin(0.5)
        print("not reached")
end

function cases.PF06()
        jit.off()
        local a, b = 0, 0
        profile.start("li10", function() a = a + 1 end)
        spin(0.5)
        profile.start("li10", function() b = b + 1 end)          -- restarts
        spin(0.5)
        profile.stop()
        profile.stop()
        local seen = b
        spin(0.3)
        print("first", a > 0, "second", b > 0, "after stop", b == seen)
end

local function dump_here(fmt, depth) return (profile.dumpstack(fmt, depth)) end

function cases.PF08()
        local lines = dump_here("l\n", 10)
        print("lines", (lines:gsub("%d+", "N"):gsub("\n", "|")))
        print("zapped", (dump_here("lZ;", -100):gsub("%d+", "N")))
        print("literal", (dump_here("F<f>p ", 2):gsub("%d+", "N"):gsub("[^%s<>]*/", "")))
        local co = coroutine.create(function() local x = 1 coroutine.yield(x) end)
        coroutine.resume(co)
        print("thread", (profile.dumpstack(co, "fZ;", 5):gsub("%d+", "N")))
        local function deep(n) if n == 0 then return (dump_here("f;", 100)) end return (deep(n - 1)) end
        print("frames", select(2, deep(150):gsub(";", "")))
end

function cases.PF09()                   -- dumpstack without start (after a stop it corrupts the heap: not ours to show)
        print("dump", (dump_here("fZ;", -10):gsub("%d+", "N")))
end

function cases.PF11()
        local util = require "jit.util"
        local function traces()
                local n = 0
                for i = 1, 200 do if util.traceinfo(i) then n = n + 1 end end
                return n
        end
        for i = 1, 10 do load(("local x = 0 for i = 1, 1000 do x = x + i %% %d end"):format(i + 1))() end
        local before = traces()
        profile.start("fi10", function() end)
        local inside = traces()
        profile.stop()
        print("before", before > 5, "after start", inside < before)
        local x = 0
        for k = 1, 10 do load(("local x = 0 for i = 1, 1000 do x = x + i %% %d end"):format(k + 1))() end
        print("again", traces() > 5)
end

cases[case]()
