-- Used by the truth programs: the thread's CPU clock, and what each part of the program really took.
-- A program charges CPU nanoseconds to keys and writes them at its end to the file named by its first argument:
-- KEY <tab> NS, and the key "cpu" for all of the program. Keys, read by tests/truth/run.py:
--   self N / total N   function defined at line N of the program, alone / with what it calls
--   lines A-B          code lines A to B alone
--   tlines A-B         stacks with one of these lines
--   leaf NAME          a C function or builtin
--   zone PATH, vmstate LETTER
--   statelines LETTER A-B   stacks with one of these lines, in this VM state
--   alllines LETTER A-B     the same as a share of the time in the state; see always
-- After A-B the name of another file than the program's may follow.
--   late               in the kernel, whose ticks come when the program goes on: by so much each share may be wrong
--   oneline N I        the Ith of several functions defined at line N, ordered by share
local ffi = require "ffi"
ffi.cdef [[
typedef struct { long sec, nsec; } truth_timespec;
int clock_gettime(int clock, truth_timespec *ts);
]]
local C, ts = ffi.C, ffi.new "truth_timespec"
local M, charged, order = {}, {}, {}

function M.now()
        C.clock_gettime(3, ts)          -- CLOCK_THREAD_CPUTIME_ID
        return tonumber(ts.sec) * 1e9 + tonumber(ts.nsec)
end

function M.charge(key, ns)
        if not charged[key] then
                charged[key] = 0
                order[#order + 1] = key
        end
        charged[key] = charged[key] + ns
end

local function line_of(fn) return debug.getinfo(fn, "S").linedefined end

-- Made once of each function: what getinfo and the concatenation allocate costs steps of the collector.
local function key_of(kind)
        local keys = {}
        return function(fn)
                keys[fn] = keys[fn] or kind .. " " .. line_of(fn)
                return keys[fn]
        end
end
M.self, M.total = key_of "self", key_of "total"
function M.oneline(fn, i) return "oneline " .. line_of(fn) .. " " .. i end

-- The key's share is 100 %, whatever was charged.
local all = {}
function M.always(key)
        M.charge(key, 0)
        all[key] = true
end

-- Lines of fn from its first + a to its first + b.
function M.lines(fn, a, b)
        local first = line_of(fn)
        return ("lines %d-%d"):format(first + a, first + b)
end

-- n times 0.4 to 1.6, never the same twice in a row: phases of one length beat with the sampling period, as a wheel
-- seems to stand still in a film, and the shares would be wrong through no fault of the profiler.
local seed = 7
function M.vary(n)
        seed = (seed * 16807) % 2147483647
        return math.floor(n * (0.4 + 1.2 * seed / 2147483647))
end

local start, wanted = M.now(), tonumber(arg[2] or "2.6") * 1e9

-- True while the program has not used its CPU time (second argument, seconds).
function M.more() return M.now() - start < wanted end

-- Writes the file; again when it is called again, as by finalizers.
function M.done()
        local f = assert(io.open(arg[1], "w"))
        local cpu = M.now() - start
        f:write("cpu\t", ("%.0f"):format(cpu), "\n")
        for _, key in ipairs(order) do f:write(key, "\t", ("%.0f"):format(all[key] and cpu or charged[key]), "\n") end
        f:close()
end

return M
