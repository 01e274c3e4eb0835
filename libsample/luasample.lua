-- require "luasample" in a program that is not recorded: the same functions, which do nothing and return the same.
-- Under `luasample record` the agent provides the module itself, before this file is looked for.
local function nothing() end

return {
  start = nothing,                              -- start("name") or start{name = "name"}
  stop = nothing,
  pause = nothing,
  resume = nothing,
  mark = nothing,                               -- mark("name")
  zone = function(name, fn, ...) return fn(...) end,
  zone_push = nothing,                          -- zone_push("name")
  zone_pop = nothing,
  label = nothing,                              -- label("key", value); nil removes it
  ready = nothing,                              -- ready(coroutine); ready(coroutine, false) when it runs
  is_recording = function() return false end,
}
