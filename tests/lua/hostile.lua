-- A program that lies to who looks at its memory: hostile.lua HOW. It changes its own VM by the FFI, and then waits in such a way that
-- it never runs what it has broken.
local ffi = require "ffi"
ffi.cdef [[
int poll(void *, unsigned long, int);
void *mmap(void *, size_t, int, int, int, long);
]]
local how = arg[1]
local GLREF, BASE, TOP, MAXSTACK, STACK, CFRAME = 16, 32, 40, 48, 56, 80
local PT = 104

local function at(address, ctype) return ffi.cast((ctype or "uint64_t") .. " *", address) end
local function word(address) return at(address)[0] end

-- Where an object is: a table's array holds the values that it has.
local function address(value)
        local t = { value, value }
        local array = word(ffi.cast("uint64_t", tonumber(string.match(tostring(t), "0x(%x+)"), 16)) + 16)
        return bit.band(at(array)[1], 0x7fffffffffffULL)
end

local function proto(fn) return word(address(fn) + 32) - PT end

-- n bytes, each word of them value, or its own address when that is nil.
local function region(n, value)
        local p = ffi.C.mmap(nil, n, 3, 0x22, -1, 0)
        local words = ffi.cast("uint64_t *", p)
        for i = 0, n / 8 - 1 do words[i] = value or ffi.cast("uint64_t", words + i) end
        return ffi.cast("uint64_t", words)
end

local function announce()
        io.write("begin\n")
        io.flush()
end

local function block()
        announce()
        ffi.C.poll(nil, 0, -1)
end

-- Runs fn in a coroutine that is blocked for ever after it.
local function blocked_in_coroutine(fn)
        coroutine.wrap(function()
                fn(address(coroutine.running()))
                block()
        end)()
end

local keep = {}
local function suspended(body, ...)
        local co = coroutine.create(body or function(...) local a, b = ... coroutine.yield(a) return b end)
        keep[#keep + 1] = co
        coroutine.resume(co, ...)
        return co, address(co)
end

-- Each change of the words of an object is tried: random ones, small, large, pointers to itself.
local function shake(from, n)
        local words = at(from)
        local i = math.random(0, n / 8 - 1)
        local what = math.random(6)
        if what == 1 then words[i] = from + math.random(0, n)
        elseif what == 2 then words[i] = words[i] + math.random(-64, 64)
        elseif what == 3 then words[i] = 0xffffffffffffffffULL
        elseif what == 4 then words[i] = bit.bxor(words[i], bit.lshift(1ULL, math.random(0, 63)))
        elseif what == 5 then at(words + i, "uint32_t")[0] = 0xfffffffe
        else words[i] = math.random(0, 2 ^ 47) end
end

local ways = {}

-- A name of a length that wraps sums, of a fast function that no table of names has.
function ways.string()
        local key = "a name of a fast function"
        local fast = pcall
        _G[key], pcall = fast, nil
        at(address(fast) + 10, "uint8_t")[0] = 250
        suspended(function() fast(coroutine.yield) end)
        at(address(key) + 20, "uint32_t")[0] = 0xfffffffe
        coroutine.wrap(function() fast(block) end)()
end

-- A C frame that is its own predecessor, of a protected call that is always over.
function ways.cframe()
        blocked_in_coroutine(function(L)
                local cf = bit.band(word(L + CFRAME), -4LL + 0ULL)
                at(cf + 32)[0] = cf
                at(cf + 8, "int32_t")[0] = -0x7fffffff - 1
        end)
end

-- As many frames as memory has room for: each is a C function's, two slots above the one before.
function ways.frames()
        local n = 256 * 2 ^ 20
        local fn = bit.bor(address(pcall), bit.lshift(bit.bnot(8ULL), 47))
        local stack = region(n, 0ULL)
        local slots = at(stack)
        for i = 2, n / 8 - 2, 2 do
                slots[i] = fn
                slots[i + 1] = 16 + 1
        end
        local _, co = suspended()
        at(co + STACK)[0], at(co + MAXSTACK)[0] = stack, stack + n
        at(co + BASE)[0], at(co + TOP)[0] = stack + n - 64, stack + n - 8
        block()
end

-- Sizes of a prototype, and the texts that it points to, have no end.
function ways.sizes()
        local endless = region(2 ^ 20, 0x6161616161616161ULL)
        for i = 1, 30 do
                local body = loadstring("local x = ... local function f() local r = coroutine.yield(x) return r end local r = f() return r")
                suspended(body, i)
                local pt = proto(body)
                at(pt + 12, "uint32_t")[0] = 0xffffffff
                at(pt + 48, "uint32_t")[0], at(pt + 52, "uint32_t")[0] = 0xffffffff, 0xffffffff
                at(pt + 56, "uint32_t")[0] = 0x3fffffff
                at(pt + 88)[0], at(pt + 96)[0] = endless, endless
        end
        block()
end

-- Chunk names of all lengths.
function ways.names()
        for i = 1, 40 do
                local body = loadstring("local x = ... coroutine.yield(x) return x", "=name " .. i)
                suspended(body, i)
                at(word(proto(body) + 64) + 20, "uint32_t")[0] = 0xffffffff - i % 24
        end
        block()
end

-- The list of all objects is a ring, and one object is none.
function ways.list()
        for i = 1, 50 do suspended() end
        local _, a = suspended()
        local _, b = suspended()
        at(a)[0] = b
        blocked_in_coroutine(function(L) at(L)[0] = L end)
end

-- A coroutine that has resumed itself.
function ways.resumer()
        blocked_in_coroutine(function(L)
                local cf = bit.band(word(L + CFRAME), -4LL + 0ULL)
                at(cf + 80 + 16)[0] = L
        end)
end

-- Coroutines whose memory changes all the time, into anything.
function ways.shaken()
        math.randomseed(tonumber(arg[2]) or 1)
        local at_once = {}
        for i = 1, 60 do
                local co, L = suspended(nil, i)
                at_once[i] = { L, word(L + STACK) }
        end
        announce()
        while true do
                local one = at_once[math.random(#at_once)]
                if math.random(3) == 1 then shake(one[1] + 16, 80) else shake(one[2], 160) end
                if math.random(200) == 1 then ffi.C.poll(nil, 0, 1) end
        end
end

-- What the agent keeps of its VMs, as soon as there is an agent: all its pointers lead to a region that leads to itself.
function ways.agent()
        local global = word(address(coroutine.create(print)) + GLREF)
        local own = region(2 ^ 20)
        local function look()
                for line in io.lines("/proc/self/maps") do
                        local low, high, rights, file = line:match("^(%x+)%-(%x+) (%S+) %S+ %S+ %S+%s*(.*)")
                        low, high = tonumber(low, 16), tonumber(high, 16)
                        if rights == "rw-p" and high - low < 2 ^ 22 and not file:find("[stack]", 1, true) then
                                for p = low, high - 64, 8 do
                                        local vm = at(p)
                                        if vm[0] == global and at(p + 12, "uint32_t")[0] == 0 and vm[1] == 1 and
                                           at(p + 24, "uint32_t")[0] == 1 then
                                                return p
                                        end
                                end
                        end
                end
        end
        announce()
        for _ = 1, 3000 do
                local vm = look()
                if vm then
                        for i = 4, 7 do at(vm)[i] = own + 4096 * i end
                        break
                end
                ffi.C.poll(nil, 0, 2)
        end
        for i = 1, 20 do suspended() end
        while true do ffi.C.poll(nil, 0, 20) end
end

collectgarbage("stop")                  -- the collector would meet what is broken
ways[how]()
