-- Runs a benchmark program and writes what it used: timed.lua OUTFILE PROGRAM [ARG...]
-- OUTFILE gets: CPU seconds of the process, peak resident KiB.
local out, program = arg[1], arg[2]
arg = { [0] = program, select(3, ...) }
dofile(program)
local cpu, peak = os.clock(), 0
for line in io.lines("/proc/self/status") do peak = tonumber(line:match("^VmHWM:%s*(%d+)")) or peak end
local f = assert(io.open(out, "w"))
f:write(("%.6f %d\n"):format(cpu, peak))
f:close()
