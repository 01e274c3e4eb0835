-- require "luasample.iprof", a case for each argument: iprof.lua MODULE CASE... The clock of the module is the variable
-- clock, in seconds, so times are exact; the case real has LuaJIT's. Each case prints its name when it is right.
local file = arg[1]
local ffi = require "ffi"
local clock = 1000
local fake = { cdef = ffi.cdef, new = ffi.new, C = {} }
function fake.C.luasample_iprof_clock(_, words)
  words[0], words[2] = math.floor(clock), clock % 1 * 1e9
  return 0
end
local function load(with)
  package.loaded.ffi = with
  local M = assert(loadfile(file))()
  package.loaded.ffi = ffi
  return M
end
local iprof = load(fake)

local function is(got, want, what)
  if got ~= want then error(("%s: %s, not %s"):format(what or "value", tostring(got), tostring(want)), 2) end
end

-- "name calls lua wall(subs)", sorted.
local function text(t)
  local out = {}
  for name, v in pairs(t) do
    for key in pairs(v) do assert(key == "calls" or key == "lua" or key == "wall" or key == "subs", key) end
    assert(v.subs == nil or next(v.subs), "empty subs")
    name = name:gsub("@%S*/", "@")
    out[#out + 1] = ("%s %d %g %g%s"):format(name, v.calls, v.lua, v.wall, v.subs and "(" .. text(v.subs) .. ")" or "")
  end
  table.sort(out)
  return table.concat(out, ", ")
end
local function line_of(f) return debug.getinfo(f, "S").linedefined end
local function fn(f) return "function @iprof.lua:" .. line_of(f) end
local function builtin(f) return "builtin #" .. require "jit.util".funcinfo(f).ffid end

-- What profile() reports of f(...), as text.
local function report(mode, limit, f, ...)
  local result, why
  iprof.profile(f, function(t, e) result, why = t, e end, "L", mode, limit)(...)
  assert(result, why)
  return text(result)
end

local function leaf() clock = clock + 1 end
local function middle() leaf(); clock = clock + 2; leaf() end
local function top() middle(); clock = clock + 4 end

local case = {}

function case.messages()                                        -- IP01
  local function fails(want, ...)
    local ok, why = iprof.start(...)
    is(ok, false) is(why, want)
  end
  fails("wrong profiling mode, use iprof.{PLAIN,INCLUSIVE,EXCLUSIVE}", "L", 7)
  fails("wrong profiling mode, use iprof.{PLAIN,INCLUSIVE,EXCLUSIVE}", "L", "PLAIN")
  for _, limit in ipairs { -1, 201, 0.5, 0 / 0, "1", {} } do
    fails("wrong profiling limit, use non-negative number less than 201", "L", iprof.PLAIN, limit)
  end
  local ok, why = pcall(iprof.start)
  is(ok, false) assert(why:find("string expected, got no value", 1, true), why)
  is(debug.gethook(), nil, "hook") is((jit.status()), true, "compiler")
  is(iprof.start("L"), true) is(iprof.start("L", nil, 0), true) is(iprof.start("L", iprof.PLAIN, 200), true)
  for i = 1, 3 do assert(iprof.stop()) end
  local util = package.loaded["jit.util"]
  package.loaded["jit.util"], package.preload["jit.util"] = nil, function() error "none" end
  local other = assert(loadfile(file))()
  package.loaded["jit.util"], package.preload["jit.util"] = util, nil
  ok, why = other.start("L")
  is(ok, false) is(why, "Inappropriate ujit build")
end

function case.nesting()                                         -- IP01: allowed here
  iprof.start("outer", iprof.INCLUSIVE)
  clock = clock + 1
  iprof.start("inner", iprof.INCLUSIVE)
  leaf()
  local inner, why = iprof.stop()
  clock = clock + 1
  local outer = iprof.stop()
  is(text(inner), "inner 1 1 1(" .. fn(leaf) .. " 1 1 1)", why)
  is(text(outer), "outer 1 3 3(" .. fn(leaf) .. " 1 1 1)")
  is(debug.gethook(), nil, "hook")
end

function case.stop()                                            -- IP02
  local result, why = iprof.stop()
  is(result, nil) is(why, "Error occured while profiling")
  assert(iprof.start "L")
  is(type(iprof.stop()), "table")
  is(iprof.stop(), nil)
end

function case.real()                                            -- IP03, with the real clock
  local real = load(ffi)
  for _, mode in ipairs { real.PLAIN, real.INCLUSIVE, real.EXCLUSIVE } do
    real.start("L", mode)
    local before = os.clock()
    while os.clock() - before < 0.02 do end
    local result = real.stop()
    local L = result.L
    is(L.calls, 1) is(L.subs ~= nil, mode ~= real.PLAIN)
    for name, v in pairs(L.subs or { L = L }) do
      assert(v.calls > 0 and v.lua > 0 and v.wall > 0, name)
      assert(v.subs == nil)
      if mode ~= real.PLAIN then is(name, builtin(os.clock)) assert(v.calls > 10) end
    end
    assert(mode ~= real.PLAIN or L.wall >= 0.019, L.wall)       -- of the others what the hook takes is taken off
  end
end

function case.plain()                                           -- IP04
  is(report(iprof.PLAIN, nil, top), "L 1 8 8")
  is(report(nil, nil, top), "L 1 8 8")
  is(debug.gethook(), nil, "hook")
end

function case.inclusive()                                       -- IP05
  is(report(iprof.INCLUSIVE, nil, top),
     ("L 1 8 8(%s 1 8 8(%s 1 4 4(%s 2 2 2)))"):format(fn(top), fn(middle), fn(leaf)))
end

function case.exclusive()                                       -- IP06
  is(report(iprof.EXCLUSIVE, nil, top),
     ("L 1 0 0(%s 1 4 4(%s 1 2 2(%s 2 2 2)))"):format(fn(top), fn(middle), fn(leaf)))
  local function fib(n)
    clock = clock + 1
    if n < 2 then return n end
    return fib(n - 1) + fib(n - 2)
  end
  local function sums(mode)
    assert(iprof.start("L", mode))
    fib(10)
    return assert(iprof.stop()).L
  end
  local inclusive, exclusive = sums(iprof.INCLUSIVE), sums(iprof.EXCLUSIVE)
  local function same(i, e)
    local sum = e.wall
    for name, sub in pairs(e.subs or {}) do sum = sum + same(i.subs[name], sub) end
    is(i.wall, sum) is(i.calls, e.calls)
    return sum
  end
  is(same(inclusive, exclusive), 177)
end

function case.limit()                                           -- IP07
  is(report(iprof.INCLUSIVE, 1, top), ("L 1 8 8(%s 1 8 8)"):format(fn(top)))
  is(report(iprof.EXCLUSIVE, 1, top), ("L 1 0 0(%s 1 8 8)"):format(fn(top)))
  is(report(iprof.EXCLUSIVE, 2, top), ("L 1 0 0(%s 1 4 4(%s 1 4 4))"):format(fn(top), fn(middle)))
  is(report(iprof.EXCLUSIVE, 0, top), "L 1 8 8")
end

function case.deep()                                            -- IP08: the limit is 200 if none is given
  local function deep(n) clock = clock + 1; if n > 1 then deep(n - 1) end end
  local t
  iprof.profile(deep, function(r) t = r.L end, "L", iprof.EXCLUSIVE)(1000)
  local levels, calls, wall = -1, 0, 0
  while t do
    levels, calls, wall = levels + 1, calls + t.calls, wall + t.wall
    t = t.subs and t.subs[next(t.subs)]
  end
  is(levels, 200) is(calls, 201) is(wall, 1000)
end

function case.names()                                           -- IP09
  local chunk = assert(loadstring("return 1", "=chunk"))
  local inner = assert(loadstring("return function() return 1 end", "=text"))()
  iprof.start("L", iprof.INCLUSIVE)
  chunk() inner() tostring(1) leaf()
  io.stdout:write("")
  local L = assert(iprof.stop()).L
  local want = { ["main chunk"] = 1, ["function text:1"] = 1, [builtin(tostring)] = 1, [builtin(io.stdout.write)] = 1 }
  for name, v in pairs(L.subs) do
    if not want[name] then assert(name:find("^function @.*iprof%.lua:" .. line_of(leaf) .. "$"), name) end
    is(v.calls, 1, name)
    want[name] = nil
  end
  is(next(want), nil, "missing")                -- assert, start and stop are none
  assert(iprof.start("L", iprof.INCLUSIVE))
  local open = package.loadlib(os.getenv "IPROF_C" or "", "luaopen_exacttruth")
  L = assert(iprof.stop()).L
  if open then
    iprof.start("L", iprof.INCLUSIVE)
    open()
    assert(next(assert(iprof.stop()).L.subs):find "^@0x%x+$")
  end
end

function case.profile()                                         -- IP10
  local got
  local function f(...) return select("#", ...), ... end
  local function cb(...) got = { n = select("#", ...), ... } end
  local function pack(...) return { n = select("#", ...), ... } end
  local r = pack(iprof.profile(f, cb, "L", iprof.INCLUSIVE)(1, nil, "x", nil))
  is(r.n, 5) is(r[1], 4) is(r[2], 1) is(r[3], nil) is(r[4], "x") is(r[5], nil)
  is(got[1].L.calls, 1)
  r = pack(iprof.profile(f, cb, "L", iprof.INCLUSIVE, -3)(1))
  is(r.n, 2) is(got.n, 2) is(got[1], nil) is(got[2], "wrong profiling limit, use non-negative number less than 201")
  is(debug.gethook(), nil, "hook")
end

function case.echo()                                            -- IP11
  local result
  local function echo(...) return ... end
  iprof.profile(leaf, function(t) result = t end, "L", iprof.INCLUSIVE)(echo "x")
  is(text(result), ("L 1 1 1(%s 1 1 1)"):format(fn(leaf)))
end

function case.tail()                                            -- IP12
  local function call() clock = clock + 1; leaf(); clock = clock + 1 end
  local function callt() clock = clock + 1; return leaf() end
  is(report(iprof.EXCLUSIVE, nil, call), ("L 1 0 0(%s 1 2 2(%s 1 1 1))"):format(fn(call), fn(leaf)))
  local want = { fn(callt) .. " 1 1 1", fn(leaf) .. " 1 1 1" }
  table.sort(want)
  is(report(iprof.EXCLUSIVE, nil, callt), ("L 1 0 0(%s)"):format(table.concat(want, ", ")))
end

function case.errors()                                          -- IP13
  local reports = 0
  local object = {}
  local function dies() leaf(); error(object) end
  local function asd() return object.x.y end
  local ok, why = pcall(iprof.profile(dies, function() reports = reports + 1 end, "L", iprof.INCLUSIVE))
  is(ok, false) is(why, object) is(reports, 0)
  leaf()
  is(debug.gethook(), nil, "hook after an error") is(iprof.stop(), nil)
  for i = 1, 3 do pcall(iprof.profile(asd, is, "L")) end
  is(iprof.stop(), nil, "a profile that an error left")
  is(iprof.start "L", true)
  pcall(iprof.profile(asd, is, "L"))
  is(assert(iprof.stop()).L.calls, 1)
  is(iprof.stop(), nil)
  -- caught inside: what follows belongs to the catcher
  local function croak() clock = clock + 1; error "x" end
  local function runtime() clock = clock + 1; return asd() end
  local function catcher(f)
    pcall(f)
    clock = clock + 10
    leaf()
  end
  is(report(iprof.EXCLUSIVE, nil, catcher, croak),
     ("L 1 0 0(%s 1 10 10(%s 1 0 0(%s 1 1 1(%s 1 0 0)), %s 1 1 1))")
     :format(fn(catcher), builtin(pcall), fn(croak), builtin(error), fn(leaf)))
  local r = report(iprof.EXCLUSIVE, nil, catcher, runtime)
  assert(r:find(fn(catcher) .. " 1 10 10(", 1, true), r)
end

local function yields(seconds) coroutine.yield(seconds) end
local function waits(mode, limit)
  local result
  local function a(s) yields(s) end
  local function body(s) a(s); clock = clock + 1 end
  local co = coroutine.create(iprof.profile(body, function(t) result = t end, "L", mode, limit))
  assert(coroutine.resume(co, 5))
  clock = clock + 5
  leaf()
  assert(coroutine.resume(co))
  is(coroutine.status(co), "dead") is(debug.gethook(), nil, "hook")
  return text(result), fn(body), fn(a), fn(yields), builtin(coroutine.yield)
end

function case.coroutine()                                       -- IP14
  local function check(mode, limit, want)
    local got, body, a, y, b = waits(mode, limit)
    is(got, (want:gsub("%a+", { body = body, a = a, y = y, b = b })))
  end
  check(iprof.PLAIN, nil, "L 1 1 7")
  check(iprof.INCLUSIVE, nil, "L 1 1 7(body 1 1 7(a 1 0 6(y 1 0 6(b 1 0 6))))")
  check(iprof.EXCLUSIVE, nil, "L 1 0 0(body 1 1 1(a 1 0 0(y 1 0 0(b 1 0 6))))")
  check(iprof.EXCLUSIVE, 2, "L 1 0 0(body 1 1 1(a 1 0 6))")
  check(iprof.INCLUSIVE, 2, "L 1 1 7(body 1 1 7(a 1 0 6))")
  check(iprof.EXCLUSIVE, 3, "L 1 0 0(body 1 1 1(a 1 0 0(y 1 0 6)))")
end

function case.parent()                                          -- IP15
  local results = {}
  local function take(t) for k, v in pairs(t) do results[k] = text { [k] = v } end end
  local function fibonacci(n)
    clock = clock + 1
    return n < 2 and n or fibonacci(n - 1) + fibonacci(n - 2)
  end
  local function factorial(n)
    clock = clock + 1
    if n % 2 == 0 then coroutine.yield() end
    return n < 2 and 1 or n * factorial(n - 1)
  end
  local one = coroutine.create(iprof.profile(function() coroutine.yield(); return (fibonacci(6)) end, take, "fib"))
  local two = coroutine.create(iprof.profile(factorial, take, "fac", iprof.EXCLUSIVE, 1))
  iprof.start("main", iprof.EXCLUSIVE)
  local alive = true
  while alive do
    alive = coroutine.resume(one)
    alive = coroutine.resume(two, 7) or alive
    clock = clock + 100
  end
  take(assert(iprof.stop()))
  assert(results.fib:find "^fib 1 25 12[5-9]", results.fib)
  assert(results.fac:find "^fac 1 0 0%(function @iprof.lua:%d+ 1 7 %d+%)$", results.fac)
  assert(results.main:find("main 1 500 500(", 1, true), results.main)
  assert(results.main:find(builtin(coroutine.resume) .. " 10 32 32", 1, true), results.main)
  assert(not results.main:find(fn(fibonacci), 1, true) and not results.main:find(fn(factorial), 1, true), results.main)
  -- one that dies, and one that is collected, with their profiles
  local dies = coroutine.create(function() assert(iprof.start("dies", iprof.INCLUSIVE)); error "x" end)
  assert(not coroutine.resume(dies))
  leaf()
  is(debug.gethook(), nil, "hook of a dead coroutine")
  local lost = coroutine.create(function() assert(iprof.start("lost", iprof.INCLUSIVE)); coroutine.yield() end)
  assert(coroutine.resume(lost))
  leaf()
  lost = nil
  collectgarbage() collectgarbage()
  coroutine.wrap(leaf)() leaf()
  is(debug.gethook(), nil, "hook of a collected coroutine")
end

function case.metamethod()                                      -- IP16
  local function add() clock = clock + 1; return 1 end
  local a = setmetatable({}, { __add = add, __index = function() clock = clock + 2; return 2 end })
  local function f() local x = a + a; return (a.x + x) end
  local index = getmetatable(a).__index
  local want = { fn(add) .. " 1 1 1", fn(index) .. " 1 2 2" }
  table.sort(want)
  is(report(iprof.EXCLUSIVE, nil, f), ("L 1 0 0(%s 1 0 0(%s))"):format(fn(f), table.concat(want, ", ")))
end

function case.cframe()
  local function less(a, b) clock = clock + 1; return a < b end
  local function f() table.sort({ 2, 1 }, less); clock = clock + 8; string.gsub("abc", ".", leaf); clock = clock + 1 end
  local r = report(iprof.EXCLUSIVE, nil, f)
  local n = tonumber(r:match(fn(less):gsub("%p", "%%%0") .. " (%d+) "))
  is(r, ("L 1 0 0(%s 1 9 9(%s))"):format(fn(f), (function()
    local t = { ("%s 1 0 0(%s %d %d %d)"):format(builtin(table.sort), fn(less), n, n, n),
                ("%s 1 0 0(%s 3 3 3)"):format(builtin(string.gsub), fn(leaf)) }
    table.sort(t)
    return table.concat(t, ", ")
  end)()))
end

function case.ffi()
  ffi.cdef "int abs(int);"
  local abs = ffi.C.abs
  local callback = ffi.cast("int (*)(int)", function(x) clock = clock + 1; return x end)
  local function f() abs(-3); clock = clock + 2; callback(4) end
  iprof.start("L", iprof.EXCLUSIVE)
  f()
  local L = assert(iprof.stop()).L
  local sub
  for name, v in pairs(L.subs) do if name:find "^function" then sub = v end end
  is(sub.wall, 2)
  local name, call = next(sub.subs)
  assert(name:find "^builtin #" and next(sub.subs, name) == nil, name)
  is(call.calls, 2) is(select(2, next(call.subs)).wall, 1)
  callback:free()
end

function case.hook()
  local calls, counts, lines, seen = 0, 0, 0, nil
  local function theirs(event)
    if event == "call" and debug.getinfo(2, "f").func == leaf then calls = calls + 1 end
    if event == "count" then counts = counts + 1 end
    if event == "line" then lines = lines + 1; seen = debug.getinfo(2, "S").short_src end
  end
  debug.sethook(theirs, "cl", 7)
  local r = report(iprof.EXCLUSIVE, nil, top)
  local f, m, c = debug.gethook()
  debug.sethook()
  is(r, ("L 1 0 0(%s 1 4 4(%s 1 2 2(%s 2 2 2)))"):format(fn(top), fn(middle), fn(leaf)))
  is(f, theirs) is(m, "cl") is(c, 7) is(calls, 2)
  assert(counts >= 3 and lines >= 5 and seen:find "iprof.lua$", counts .. " " .. lines)
  -- one that takes our place
  assert(iprof.start("L", iprof.INCLUSIVE))
  debug.sethook(theirs, "c")
  local result, why = iprof.stop()
  is(result, nil) is(why, "the program has set a hook of its own since the profile began")
  is((debug.gethook()), theirs) is((jit.status()), true, "compiler")
  debug.sethook()
end

function case.jit()
  local function hot(n) clock = clock + 1; return n end
  local function loop() for i = 1, 1000 do hot(i) end end
  for i = 1, 100 do loop() end
  is((jit.status()), true)
  is(report(iprof.EXCLUSIVE, nil, loop), ("L 1 0 0(%s 1 0 0(%s 1000 1000 1000))"):format(fn(loop), fn(hot)))
  is((jit.status()), true, "compiler")
  for i = 1, 100 do loop() end
  local traces = 0
  for i = 1, 100 do traces = traces + (require "jit.util".traceinfo(i) and 1 or 0) end
  assert(traces > 0, "nothing was compiled again")
  jit.off()
  report(iprof.EXCLUSIVE, nil, loop)
  is((jit.status()), false, "compiler")
  jit.on()
end

function case.program()         -- calls of each line's function in another program: $IPROF_PROGRAM, one round; to $IPROF_OUT
  local name = os.getenv "IPROF_PROGRAM"
  local f, own, result = assert(loadfile(name)), arg, nil
  arg = { [0] = name, "1" }
  iprof.profile(f, function(t, why) result = assert(t, why) end, "L", iprof.EXCLUSIVE)("1")
  arg = own
  local calls = {}
  local function walk(node)
    for sub_name, sub in pairs(node.subs or {}) do
      local line = sub_name:match "^function @.*:(%d+)$"
      if line then calls[line] = (calls[line] or 0) + sub.calls end
      walk(sub)
    end
  end
  walk(result.L)
  local out = assert(io.open(os.getenv "IPROF_OUT", "w"))
  for line, n in pairs(calls) do out:write(line, " ", n, "\n") end
  out:close()
end

for i = 2, #arg do
  case[arg[i]]()
  print(arg[i])
end
