-- drive.lua MODULE RESULT DUMP PROGRAM [ARG...]: runs a program under score.c.
local module, result, dump, program = arg[1], arg[2], tonumber(arg[3]), arg[4]
local open = assert(package.loadlib(module, "luaopen_jitscore"))
local score = open()
local args = { [0] = program }
for i = 5, #arg do args[i - 4] = arg[i] end
arg = args
local irnames = require("jit.vmdef").irnames
local chunk = assert(loadfile(program))
jit.attach(score.on_trace, "trace")
jit.attach(score.on_record, "record")
if os.getenv("JIT_PLAIN_CPU") then score.plain_cpu() end
score.start()
local ok, why = pcall(chunk, unpack(args))
jit.attach(score.on_trace)
jit.attach(score.on_record)
score.stop(irnames, result, dump)
if not ok then error(why, 0) end
