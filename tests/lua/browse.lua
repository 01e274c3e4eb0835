-- For the terminal browser: callers that share callees, recursion, zones, 10,000 frames, and names that no terminal likes.
-- Argument: seconds of CPU time for each part.
local zone = require("jit.zone")
local seconds = tonumber(arg and arg[1] or "0.1")

local function busy(t)
        local stop, n = os.clock() + t, 0
        while os.clock() < stop do
                for i = 1, 200 do n = n + #tostring(i) end
        end
        return n
end

function Render(t)
        zone("render")
        busy(t)
        zone()
end

function Update(t)
        zone("update")
        busy(t / 2)
        for _ = 1, 2 do Render(t / 4) end
        zone()
end

local function ping(n, t)
        if n == 0 then return busy(t) end
        if n % 2 == 0 then Render(t / 10) end
        return (ping(n - 1, t)) + 0
end

local function deep(n)
        if n > 0 then return (deep(n - 1)) + 0 end
        return busy(seconds)
end

Update(seconds)
Render(seconds)
ping(4, seconds)
deep(10000)

-- 64 KiB of name; bytes that are not UTF-8; control and bidirectional characters; wide ones.
local long = ("n"):rep(65535)
local code = "local busy, t = ... ; local function %s() return (busy(t)) + 0 end ; return (%s()) + 0"
assert(loadstring(code:format(long, long), "=long"))(busy, seconds)
for _, name in ipairs { "\255\254\128", "\27[31mred\27[2J", "\226\128\174rtl", "\230\188\162\229\173\151" } do
        local chunk = assert(loadstring("local busy, t = ... ; return (busy(t)) + 0", "=" .. name))
        chunk(busy, seconds)
        _G[name] = function(t) return (busy(t)) + 0 end
        _G[name](seconds)
end
