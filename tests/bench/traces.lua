-- Runs a benchmark program and writes what the JIT compiler did: traces.lua OUTFILE events|end MOVED PROGRAM [ARG...]
-- events: a handler counts start, stop, abort and flush. end: no handler, only the live traces are counted at the end.
-- MOVED tables are made first: objects of the program lie elsewhere and collide otherwise in the counts of hot loops.
local out, mode, program = arg[1], arg[2], arg[4]
moved = {}
for i = 1, tonumber(arg[3]) do moved[i] = { i } end
local count = { start = 0, stop = 0, abort = 0, flush = 0 }
if mode == "events" then jit.attach(function(what) count[what] = count[what] + 1 end, "trace") end
arg = { [0] = program, select(5, ...) }
dofile(program)
local util, live = require "jit.util", 0
for i = 1, 65535 do
        if util.traceinfo(i) then live = live + 1 end
end
local f = assert(io.open(out, "w"))
f:write(("start %d stop %d abort %d flush %d live %d\n"):format(count.start, count.stop, count.abort, count.flush,
                                                               live))
f:close()
