-- Makes the VM rewrite its dispatch table all the time: code is loaded, compiled and dropped. A tick that meets this work
-- must not leave the program in compiled code that exits for ever: dispatch.lua [SECONDS]
local t = {}
local from, seconds, n = os.clock(), tonumber(arg[1]) or 1, 0

local function fill(count)
  for i = 1, count do t["k" .. i] = t["k" .. i] or { f = function() end } end
end

tables = t
while os.clock() - from < seconds do
  n = n + 1
  local values = {}
  for k, v in pairs(t) do values[#values + 1] = v t[k] = nil end
  for i, v in ipairs(values) do
    -- the same tables under keys of other types
    if n % 3 == 0 then t[i + 1e9 + 0.5] = v elseif n % 3 == 1 then t["k" .. i] = v else t[i * 2 ^ 40] = v end
  end
  if #values < 300 then fill(300) end
  local f = load("local function x(n) local s = 0 for i = 1, n do s = s + i % 3 end return s end return x(...)")
  f(1e4)
end
print("dispatch done")
