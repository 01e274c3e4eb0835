-- require "luasample" in a program that was not started by `luasample record`: functions that do nothing until somebody
-- records. start begins a recorder of this process, if luasample is installed, and then they are the agent's. Under
-- `luasample record` the agent provides the module itself, before this file is looked for.
local here = debug and debug.getinfo(1, "S").source:match "^@(/.*)/share/lua/5%.1/"
local has_ffi, ffi = pcall(require, "ffi")
local function nothing() end

local now = {                                   -- the functions as they are at the moment
  stop = nothing, pause = nothing, resume = nothing, zone_pop = nothing,
  zone = function(name, fn, ...) return fn(...) end,
}

local M = {
  stop = function() return now.stop() end,      -- returns the name of the trace of our own recorder
  pause = function() return now.pause() end,
  resume = function() return now.resume() end,
  mark = function(name) return now.mark(name) end,                      -- mark("name")
  counter = function(name, value) return now.counter(name, value) end,  -- counter("name", number)
  ready = function(...) return now.ready(...) end,      -- ready(coroutine); ready(coroutine, false) when it runs
  zone = function(...) return now.zone(...) end,
  zone_push = function(name) return now.zone_push(name) end,            -- zone_push("name")
  zone_pop = function() return now.zone_pop() end,
  label = function(key, value) return now.label(key, value) end,        -- label("key", value); nil removes it
  is_recording = function() return now.is_recording() end,
}

-- The agent's module takes over; what it has ends recordings, and zones and labels go on with it.
function M._join(module)
  now = module
  for name in pairs(M) do M[name] = name ~= "start" and name ~= "_join" and module[name] or M[name] end
end

-- true: this VM is recorded by an agent that came by attachment, under the name that all of them have.
local function join()
  local open = package and package.loadlib and package.loadlib("libsample.so", "luasample_open")
  local module = open and open()
  if not module then return false end
  if now ~= module then M._join(module) end
  return true
end

-- Once a second, at the cost of one look at the clock otherwise: whether an attachment has brought the agent. true: it has.
local came = nothing
if has_ffi then
  ffi.cdef [[
    int luasample_clock(int clock, int *words) __asm__("clock_gettime");
    void *luasample_dlopen(const char *file, int flags) __asm__("dlopen");
    int luasample_dlclose(void *library) __asm__("dlclose");
  ]]
  local C, time, looked = ffi.C, ffi.new "int[4]", 0
  came = function()
    C.luasample_clock(6, time)                  -- CLOCK_MONOTONIC_COARSE: the first word is the second
    if time[0] == looked then return false end
    looked = time[0]
    local library = C.luasample_dlopen("libsample.so", 5)   -- RTLD_LAZY | RTLD_NOLOAD
    if library == nil then return false end
    C.luasample_dlclose(library)
    return join()
  end
end
for _, name in ipairs { "mark", "counter", "ready", "zone_push", "label" } do
  now[name] = function(...)
    if came() then return now[name](...) end
  end
end
function now.is_recording() return came() and now.is_recording() or false end

-- Where the agent may be: with the program $LUASAMPLE, from where this file was installed, with the programs in PATH.
local function places()
  local own, dirs = os.getenv "LUASAMPLE", {}
  if own then
    dirs[1] = own:match "^(/.*)/"
  else
    dirs[1] = here and here .. "/bin"
    for dir in (os.getenv "PATH" or ""):gmatch "/[^:]*" do dirs[#dirs + 1] = dir end
  end
  local ends = { "/libsample/", "/../lib/luasample/", "/../lib64/luasample/", "/../lib/x86_64-linux-gnu/luasample/" }
  local i, k = 1, 0
  return function()
    k = k + 1
    if k > #ends then i, k = i + 1, 1 end
    return dirs[i] and dirs[i] .. ends[k] .. "libsample.so"
  end
end

local library                                   -- the agent, once it is found; false: it is not there
local function load()
  ffi.cdef [[
    int luasample_agent_begin(const char *file, const char *const *options, char *why, int size);
    unsigned long getauxval(unsigned long type);
  ]]
  if ffi.C.getauxval(23) ~= 0 then return end   -- AT_SECURE: the environment is a stranger's
  local function try(path)
    local ok, found = pcall(ffi.load, path)
    return ok and pcall(function() return found.luasample_agent_begin end) and found
  end
  local found = try "libsample.so"              -- one that came by attachment and stayed
  for path in not found and places() or nothing do
    found = try(path)
    if found then break end
  end
  return found
end

-- Begins a recorder of our own. true, or nothing: there is no luasample; or nil and a line.
local function begin(opts)
  if library == nil then library = has_ffi and load() or false end
  if not library then return end
  local words, why = {}, ffi.new "char[512]"
  local options = ffi.new("const char *[?]", #(opts.options or {}) + 1)
  for i, word in ipairs(opts.options or {}) do
    words[i] = tostring(word)                   -- what is pointed to must stay
    options[i - 1], options[i] = words[i], nil
  end
  options[#words] = nil
  local r = library.luasample_agent_begin(opts.output, options, why, 512)
  if r < 0 then return nil, ffi.string(why) end
  return r == 1 or nil
end

-- start(), start("name"), start{ name = "name", output = "FILE", options = { "--native", ... } }
-- Returns nothing where nobody records and luasample is not installed, else what the agent's start does; or nil and a line.
function M.start(opts)
  if not join() then
    local ok, why = begin(type(opts) == "table" and opts or {})
    if why then return nil, why end
    if not ok then return end
    if not join() then
      return nil, "this VM is not recorded"
    end
  end
  return now.start(opts)
end

return M
