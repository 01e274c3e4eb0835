-- Counts what the JIT compiler does in a program: counttraces.lua SEED PROGRAM [ARG...]. What is compiled depends on
-- the addresses of functions, by hash collisions of the hot counters: memory of random sizes, the seed's, is taken
-- before the program is loaded. Prints "traces N aborts N flushes N" on stderr when the program has ended.
local seed, program = tonumber(table.remove(arg, 1)), table.remove(arg, 1)
local count = { stop = 0, abort = 0, flush = 0 }
local keep = {}

local function random(n)
        seed = seed * 16807 % 2147483647
        return seed % n
end
for i = 1, 200 + random(200) do
        keep[2 * i - 1] = loadstring(("local x = 1 "):rep(1 + random(20)))
        keep[2 * i] = ("x"):rep(random(300)) .. i
end
arg[0] = program
jit.attach(function(what)
        if count[what] then count[what] = count[what] + 1 end
end, "trace")
assert(loadfile(program))(unpack(arg))
io.stderr:write(("traces %d aborts %d flushes %d\n"):format(count.stop, count.abort, count.flush))
keep = nil
