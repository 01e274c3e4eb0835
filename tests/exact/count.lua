-- count.lua WAY OUT PROGRAM [ARG...]: runs the program, and writes to OUT how often each of its bytecodes was executed.
--   exact[=FILE]  by the agent's counts, in FILE or in memory
--   hook          by hooks of Lua's C API
--   watch         nothing is counted; the compiler is watched as the agent does
-- With LOG in the environment what is compiled is written there. count.lua read=FILE OUT: what is in such a FILE.
local way, out, program = arg[1], arg[2], arg[3]
local T = require "exacttruth"
local kind, file = way:match("^(%w+)=?(.*)$")

local function must(why)
  if why then
    io.stderr:write("cannot count: ", why, "\n")
    os.exit(3)
  end
end

must(T.probe())
local skip = debug.getinfo(1, "S").source
if kind == "read" then
  must(T.read(file))
  T.write(out, skip)
  return
end
local f = assert(loadfile(program))
for i = 1, #arg do arg[i] = arg[i + 3] end
arg[0] = program
must(T[kind](file ~= "" and file or nil))
local log = os.getenv("LOG")
if log then
  local util = require "jit.util"
  log = assert(io.open(log, "w"))
  jit.attach(function(what, number, func, pos, parent, exit)
    local at = func and util.funcinfo(func, pos or 0)
    local info = what == "stop" and util.traceinfo(number)
    log:write(("%s %s %s %s %s %s\n"):format(what, tostring(number), at and at.loc or "?", tostring(parent), tostring(exit),
      info and ("%s %d %d %d"):format(info.linktype, info.link, info.nins, info.nexit) or ""))
  end, "trace")
end
f(unpack(arg))
T.write(out, skip)
if log then log:close() end
