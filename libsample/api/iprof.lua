-- require "luasample.iprof": profiles of chosen regions by instrumentation, as ujit.iprof of LuaVela has them: how often each
-- function was called in a region, and how long that took. It is for programs; it needs neither a recorder nor the agent.
--
-- One hook serves all coroutines. It follows the stack of those that have a profile, by the depth that each event has, so
-- what leaves frames without an event (errors, tail calls, functions of C) is seen at the next one. After a function of C the
-- hook stops at each instruction, until the next one of Lua: there it has returned. No hook is called in compiled code:
-- what was compiled is dropped and the compiler rests until the last profile ends. PLAIN outside of coroutines has no hook.
local has_ffi, ffi = pcall(require, "ffi")
local has_util, util = pcall(require, "jit.util")
local usable = has_ffi and has_util and debug ~= nil
local getinfo, gethook, sethook, running, status, yield = nil, nil, nil, coroutine.running, coroutine.status, coroutine.yield
local next, pairs = next, pairs
local MAIN, MOST = {}, 200                      -- MOST: LJ_MAX_XLEVEL
local M = { PLAIN = 0, INCLUSIVE = 1, EXCLUSIVE = 2 }

local now
if usable then
  getinfo, gethook, sethook = debug.getinfo, debug.gethook, debug.sethook
  ffi.cdef [[ int luasample_iprof_clock(int clock, int *words) __asm__("clock_gettime"); ]]
  local C, words = ffi.C, ffi.new "int[4]"
  function now()
    C.luasample_iprof_clock(1, words)           -- CLOCK_MONOTONIC; seconds and nanoseconds, of 64 bits each
    return words[0] + words[2] * 1e-9
  end
end

local weak = { __mode = "k" }
local states = setmetatable({}, weak)           -- coroutine -> its profiles and its stack
local names = setmetatable({}, weak)            -- function -> its name
local foreign = setmetatable({}, weak)          -- function -> it is not Lua's
local own = setmetatable({}, weak)              -- functions of this module
local current                                   -- the coroutine of the last event
local quiet = false                             -- our own functions run
local hooked, jit_was_on = false, false
local mask, count                               -- of the hook as it is set
local theirs, their_mask, their_count, their_left

local function this_coroutine()
  local co, is_main = running()
  return (is_main or not co) and MAIN or co
end

-- The depth of the function that called the caller, 1 = the bottom of its stack. guess is tried first.
local function depth(guess)
  local low, high = 2, 4
  if guess > 0 and getinfo(guess + 2, "l") and not getinfo(guess + 3, "l") then return guess end
  while getinfo(high, "l") do low, high = high, 2 * high end
  while high - low > 1 do
    local mid = (low + high - (low + high) % 2) / 2
    if getinfo(mid, "l") then low = mid else high = mid end
  end
  return low - 2
end

local function name_of(f)
  local name = names[f]
  if name then return name end
  local info = getinfo(f, "S")
  if info.what == "main" then
    name = "main chunk"
  elseif info.what ~= "C" then
    name = "function " .. (info.source:sub(1, 1) == "@" and info.source or info.short_src) .. ":" .. info.linedefined
  else
    local more = util.funcinfo(f)
    foreign[f] = true
    name = more.ffid and "builtin #" .. more.ffid or ("@0x%x"):format(more.addr)
  end
  names[f] = name
  return name
end

local function new_node(calls) return { calls = calls, lua = 0, wall = 0 } end

-- The time since the last event, to what each profile has on top. since: the coroutine was suspended then. yields: so it was,
-- though no other one was seen to run meanwhile.
local function charge(st, t)
  local wall = t - st.last
  local lua = st.since and st.since - st.last or st.yields and 0 or wall
  st.last, st.since, st.yields = t, nil, false
  for i = 1, #st do
    local p = st[i]
    local node = st.n > p.from and p.nodes[st.n] or p.root
    node.lua, node.wall = node.lua + lua, node.wall + wall
  end
end

-- Frames at this depth and above it are gone.
local function pop(st, d)
  while st.n > 0 and st.depths[st.n] >= d do
    if st.foreign[st.n] then st.foreigns = st.foreigns - 1 end
    st.foreign[st.n] = nil
    st.n = st.n - 1
  end
  for i = 1, #st do
    if st[i].from > st.n then st[i].from = st.n end
  end
end

local function push(st, d, f)
  local n, name = st.n + 1, name_of(f)
  st.n, st.depths[n], st.foreign[n] = n, d, foreign[f]
  if foreign[f] then st.foreigns = st.foreigns + 1 end
  for i = 1, #st do
    local p = st[i]
    local parent = n - 1 > p.from and p.nodes[n - 1] or p.root
    if n - p.from > p.limit then
      p.nodes[n] = parent
    else
      parent.subs = parent.subs or {}
      local node = parent.subs[name] or new_node(0)
      parent.subs[name], p.nodes[n], node.calls = node, node, node.calls + 1
    end
  end
end

-- Profiles of wrapped functions that an error has left; d is the depth of what runs.
local function drop_left(st, d)
  for i = 1, #st do
    if st[i].base >= d then
      for k = #st, i, -1 do st[k] = nil end
      return
    end
  end
end

local function is_needed()
  for co, st in pairs(states) do
    if co ~= MAIN and status(co) == "dead" then states[co], st = nil, {} end
    for i = 1, #st do
      if st[i].hooks then return true end
    end
  end
  return false
end

local hook
local function unhook()
  if gethook() == hook then
    if theirs then sethook(theirs, their_mask, their_count) else sethook() end
  end
  hooked, theirs, current = false, nil, nil
  if jit_was_on then jit.on() end
end

-- The hook is set as it is needed from now on.
local function listen(lines, instructions)
  local m = "cr" .. ((lines or theirs and their_mask:find("l", 1, true)) and "l" or "")
  local c = (instructions or their_count > 0) and 1 or 0
  if m ~= mask or c ~= count then
    mask, count = m, c
    sethook(hook, m, c)
  end
end

local function is_theirs(event)
  if not theirs then return false end
  if event ~= "count" then return their_mask:find(event:sub(1, 1), 1, true) ~= nil end
  if their_count == 0 then return false end
  their_left = their_left - 1
  if their_left > 0 then return false end
  their_left = their_count
  return true
end

local function switch(co, t)
  local st = states[current]
  if st and current ~= MAIN then
    if status(current) == "suspended" then st.since = st.since or t end
  end
  current = co
  return is_needed()
end

-- What happened in a coroutine that has profiles.
local function follow(st, event, f, d, t)
  charge(st, t)
  if event ~= "call" then
    pop(st, event == "return" and d or d + 1)
    st.retried = nil
  elseif st.retried ~= f or st.depths[st.n] ~= d then
    pop(st, d)
    st.retried = nil
    if not own[f] then
      push(st, d, f)
      -- Functions of LuaJIT's may be dispatched again, once they have their arguments as they want them.
      if foreign[f] then st.retried = f end
      st.yields = f == yield
    end
  end
  if not own[f] then drop_left(st, event == "call" and d or d + 1) end
end

function hook(event, line)
  if not quiet then
    local t, co = now(), this_coroutine()
    local f = event == "call" and getinfo(2, "f").func or nil
    if co ~= current and not switch(co, t) then
      local to = is_theirs(event) and theirs
      unhook()
      if to then return to(event, line) end
      return
    end
    local st = states[co]
    if f then name_of(f) end
    if st then
      local top = st.depths[st.n]               -- of C: it has returned, most likely
      local d = depth(top and top + (f and 1 or 0) - (st.foreign[st.n] and 1 or 0) or st.guess)
      st.guess = d
      follow(st, event, f, d, t)
      if #st == 0 then
        states[co] = nil
        if not is_needed() then
          local to = is_theirs(event) and theirs
          unhook()
          if to then return to(event, line) end
          return
        end
      end
      listen(st.foreigns > 0, st.foreign[st.n] or f and foreign[f] or event == "return" and st.n == 0)
      st.last = now()                           -- what the hook took is not the program's time
    else
      listen(true, event == "return" or f and foreign[f])       -- the coroutine may end, for one that has profiles
    end
  end
  if is_theirs(event) then return theirs(event, line) end
end

-- nil, or why there can be no hook.
local function set_hook(co)
  if hooked and gethook() == hook then return end
  if hooked and is_needed() then return "the program has set a hook of its own since the profile began" end
  if hooked then unhook() end
  local f, m, c = gethook()
  if f and type(f) ~= "function" then return "a hook of C is set" end
  theirs, their_mask, their_count, their_left = f, m or "", c or 0, c or 0
  hooked, current, jit_was_on, mask = true, co, jit.status(), nil
  if jit_was_on then
    jit.off()
    jit.flush()
  end
  listen(false, false)
end

-- The new profile, or nil and why not. base: the wrapped function's depth is that of the caller. The caller sets quiet.
local function begin(label, mode, limit, is_wrapper)
  if mode == nil then mode = M.PLAIN end
  if not usable then return nil, "Inappropriate ujit build" end
  if mode ~= M.PLAIN and mode ~= M.INCLUSIVE and mode ~= M.EXCLUSIVE then
    return nil, "wrong profiling mode, use iprof.{PLAIN,INCLUSIVE,EXCLUSIVE}"
  end
  if limit == nil then limit = MOST end
  if type(limit) ~= "number" or limit < 0 or limit > MOST or limit % 1 ~= 0 then
    return nil, ("wrong profiling limit, use non-negative number less than %d"):format(MOST + 1)
  end
  local co = this_coroutine()
  local st, d = states[co], depth(0)
  local hooks = mode ~= M.PLAIN or co ~= MAIN
  local why = hooks and set_hook(co)
  if why then return nil, why end
  if st then
    charge(st, now())
    drop_left(st, d)
  else
    st = { n = 0, foreigns = 0, depths = {}, foreign = {}, guess = d }
    states[co] = st
  end
  local p = { label = label, mode = mode, limit = mode == M.PLAIN and 0 or limit, hooks = hooks, from = st.n, nodes = {},
              root = new_node(1), base = is_wrapper and d or -1 }
  st[#st + 1] = p
  st.last = now()
  return p
end

local function add_up(node)
  for _, sub in pairs(node.subs or {}) do
    add_up(sub)
    node.lua, node.wall = node.lua + sub.lua, node.wall + sub.wall
  end
end

-- Ends the given profile of this coroutine, and those that began in it; or the innermost one.
local function finish(wanted)
  local co = this_coroutine()
  local st = states[co]
  if not st then return nil, "Error occured while profiling" end
  charge(st, now())
  if not wanted then drop_left(st, depth(0)) end
  local at = #st
  while wanted and at > 0 and st[at] ~= wanted do at = at - 1 end
  local p = st[at]
  if not p then
    if at == 0 then states[co] = nil end
    return nil, "Error occured while profiling"
  end
  for i = #st, at, -1 do st[i] = nil end
  if at == 1 then states[co] = nil end
  local lost = p.hooks and gethook() ~= hook
  if hooked and not is_needed() then unhook() end
  if lost then return nil, "the program has set a hook of its own since the profile began" end
  if p.mode == M.INCLUSIVE then add_up(p.root) end
  st.last = now()
  return { [p.label] = p.root }
end

-- start(label, mode, limit): true, or false and a line.
function M.start(label, mode, limit)
  quiet = true
  if type(label) ~= "string" then
    quiet = false
    error("bad argument #1 to 'start' (string expected, got " .. (label == nil and "no value" or type(label)) .. ")", 2)
  end
  local p, why = begin(label, mode, limit, false)
  quiet = false
  if not p then return false, why end
  return true
end

-- stop(): { [label] = { calls, wall, lua, subs } }, or nil and a line.
function M.stop()
  quiet = true
  local result, why = finish()
  quiet = false
  return result, why
end

local function leave(callback, p, why, ...)
  if p then
    quiet = true
    local result, lost = finish(p)
    quiet = false
    callback(result, lost)
  else
    callback(nil, why)
  end
  return ...
end

-- profile(f, callback, label, mode, limit): a function that does what f does, and then calls callback(result), or
-- callback(nil, line). An error out of f ends the profile without a report.
function M.profile(f, callback, label, mode, limit)
  label = label == nil and "" or tostring(label)
  local function wrapper(...)
    quiet = true
    local p, why = begin(label, mode, limit, true)
    quiet = false
    return leave(callback, p, why, f(...))
  end
  own[wrapper] = true
  return wrapper
end

for _, f in pairs { M.start, M.stop, M.profile, leave } do own[f] = true end
return M
