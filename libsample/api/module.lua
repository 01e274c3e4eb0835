-- The part of require "luasample" that is Lua: zones and labels, whose calls so compile where jit.zone's
-- do. Run once for each VM by module.c; its stack of zones is jit.zone's, own and cur are as in zones.c.
local M, own, cur, zone, lown, new_labels, OWNERS, SLOTS, PROBES = ...
local pcall, error, select = pcall, error, select
local ok, ffi = pcall(require, 'ffi')
if ok then cur = ffi.cast('int32_t *', cur) end
if ok and own then own = ffi.cast('int32_t *', own) else own = nil end
-- zones of this coroutine, or without the FFI of all
local function held()
  if not own then return #zone end
  local n, co = 0, cur[0]
  for i = 1, own[0] do if own[i] == co then n = n + 1 end end
  return n
end
local function push(name) zone(name or '') end
local function pop()
  if #zone == 0 then return false end
  if own and own[own[0]] ~= cur[0] and own[0] < OWNERS - 1 and held() == 0 then return false end
  zone() return true
end
local function finish(depth, ok, ...)
  while held() > depth and pop() do end
  if ok then return ... end
  return error((...), 0)
end
function M.zone_push(name) push(name) end
function M.zone_pop() pop() end
function M.zone(name, fn, ...)
  local depth = held()
  push(name)
  return finish(depth, pcall(fn, ...))
end
local label = function() return false end
if ok and lown then
  local bit, setmetatable, type, tostring = require 'bit', setmetatable, type, tostring
  local band, bxor, rshift = bit.band, bit.bxor, bit.rshift
  local running, status = coroutine._running or coroutine.running, coroutine._status or coroutine.status
  local slots, live, sets = ffi.cast('int32_t *', lown)
  -- a slot that nobody has, or one whose coroutine has ended and was not collected yet
  local function take(co, hash)
    for dead = 0, 1 do for i = hash, hash + PROBES - 1 do
      local s = band(i, SLOTS - 1) + 1
      local c = live[s]
      if c == nil or dead == 1 and c ~= true and status(c) == 'dead' then
        slots[s] = 0
        sets[s] = { false, false, false, false, false, false, false, false,
                    false, false, false, false, false, false, false, false }
        local c, main = running()
        live[s] = not main and c or true slots[s] = co
        return s
      end
    end end
  end
  label = function(key, value)
    if not live then
      live, sets = new_labels()
      if not live then return false end  -- an attachment has ended, or there is no memory
      setmetatable(live, { __mode = 'v' })
    end
    local co, s = cur[0]
    local hash = band(bxor(rshift(co, 4), rshift(co, 14)), SLOTS - 1)
    for i = hash, hash + PROBES - 1 do
      local at = band(i, SLOTS - 1) + 1
      if slots[at] == co and live[at] ~= nil then s = at break end
    end
    if not s then
      if value == nil then return true end
      s = take(co, hash)
      if not s then return false end
    end
    if type(key) ~= 'string' then key = tostring(key) end
    if value == nil then value = false
    elseif type(value) ~= 'string' and type(value) ~= 'number' then value = tostring(value) end
    local set, room = sets[s]
    for i = 1, 15, 2 do
      if set[i] == key then set[i + 1] = value return true end
      if not set[i + 1] and not room then room = i end
    end
    if value and room then set[room] = key set[room + 1] = value end
    return not value or room ~= nil
  end
end
function M.label(key, value) label(key, value) end
return { _push = function(name) push(name) return true end, _pop = pop, _label = label }
