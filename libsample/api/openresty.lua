-- require "luasample.openresty": labels of time for what runs in nginx with Lua: phase, route, plugin, timer. For OpenResty, Kong
-- and APISIX; see luasample-api(3). All of them do nothing but call on until somebody records.
--
-- A handler runs in a coroutine of its own, or, in phases that cannot wait (header_filter, body_filter, log), in the main one:
-- so labels are taken away when it returns. One that fails leaves them on its coroutine.
local ls = require "luasample"
local M = {}

-- Takes the labels away, and hands on what the handler returned.
local function done(a, b, c, d, ...)
  for i = 1, 4 do
    local key = select(i, a, b, c, d)
    if key then ls.label(key, nil) end
  end
  return ...
end

-- A function that calls fn with these labels: phase and plugin are texts or nil, route a text, nil, or a function of fn's
-- arguments that returns one.
local function wrapped(fn, phase, route, plugin)
  local phase_key, route_key, plugin_key = phase and "phase", route and "route", plugin and "plugin"
  return function(...)
    if not ls.is_recording() then return fn(...) end
    local name = route
    if type(route) == "function" then
      local ok, found = pcall(route, ...)
      name = ok and found or nil
    end
    if phase then ls.label("phase", phase) end
    if name then ls.label("route", name) end
    if plugin then ls.label("plugin", plugin) end
    return done(phase_key, name and route_key, plugin_key, nil, fn(...))
  end
end

-- handler = M.phase("access", route, handler): route is a text, a function, or nil.
function M.phase(phase, route, fn)
  return wrapped(fn, phase, route)
end

local phases = {
  "init_worker", "certificate", "rewrite", "access", "balancer", "response", "before_proxy", "header_filter", "body_filter",
  "delayed_body_filter", "log", "preread",
}

-- Replaces the phases of a plugin, a table with a function for each, once.
local seen = setmetatable({}, { __mode = "k" })
function M.plugin(name, handler, route)
  if seen[handler] then return handler end
  seen[handler] = true
  for _, phase in ipairs(phases) do
    local fn = handler[phase]
    if type(fn) == "function" then handler[phase] = wrapped(fn, phase, route, name) end
  end
  return handler
end

local function context(field)
  return function()
    local found = ngx.ctx[field]
    return found and (found.route_name or found.name or found.route_id or found.id)
  end
end

-- In init_worker of Kong: each plugin that it has loaded. The route is that of the request, by its name, else its id.
function M.kong()
  for _, p in ipairs(kong.db.plugins:get_handlers()) do M.plugin(p.name, p.handler, context "route") end
end

-- In init_worker of APISIX, after its own.
function M.apisix()
  local plugin = require "apisix.plugin"
  for _, list in ipairs { plugin.plugins or {}, plugin.stream_plugins or {} } do
    for _, p in ipairs(list) do M.plugin(p.name, p, context "api_ctx") end
  end
end

-- What a timer is called that has no name: where its function was written.
local function place(fn)
  local i = debug.getinfo(fn, "S")
  return i.short_src:match "[^/]*$" .. ":" .. i.linedefined
end

local function timer(fn, name)
  return function(...)
    if not ls.is_recording() then return fn(...) end
    ls.label("phase", "timer")
    ls.label("timer", name or place(fn))
    return done("phase", "timer", nil, nil, fn(...))
  end
end

-- callback = M.timer("sync", callback): for ngx.timer.at and every.
function M.timer(name, fn)
  return timer(fn, name)
end

-- From now on all timers have the label timer: the place of their functions. Once, in init_worker.
local timers_are_named
function M.timers()
  if timers_are_named then return end
  timers_are_named = true
  local at, every = ngx.timer.at, ngx.timer.every
  ngx.timer.at = function(delay, fn, ...)
    if type(fn) == "function" and ls.is_recording() then fn = timer(fn) end
    return at(delay, fn, ...)
  end
  ngx.timer.every = function(delay, fn, ...)
    if type(fn) == "function" then fn = timer(fn) end
    return every(delay, fn, ...)
  end
end

return M
