-- Chunks that are loaded, run, compiled and dropped: one comes to lie where another one was.
local rounds, sum = tonumber(arg[1] or 3000), 0
for i = 1, rounds do
  local lines = ("\n"):rep(i % 13)
  local text = lines .. "local n = ... local function f(a) return a + " .. i % 17 .. " end local s = 0 for i = 1, " ..
    (i % 50 == 0 and 200 or i % 5) .. " do s = s + f(i) end return s + n"
  sum = sum + loadstring(text, "=chunk" .. i % 7)(i)
  sum = sum + loadstring("return ...", "=" .. ("x"):rep(i % 40))(1)
  if i % 500 == 0 then collectgarbage() end
end
print(sum)
