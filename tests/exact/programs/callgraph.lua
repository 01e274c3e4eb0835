-- Calls for the call graph in callgrind's format: errors that unwind, names, functions of C: callgraph.lua N OUT.
local n, i = tonumber(arg[1]), 0
local function leaf(k)
  local s = 0
  for j = 1, k do s = s + j end
  return s
end
function outer(k)
  leaf(k)                                       --= leaf
  return leaf(2 * k) + 1                        --= leaf again
end
local function fails()
  i = i + 1
  if i > 4 then error "out" end
  fails()                                       --= itself
end
local function after() return leaf(1) end
proxy = { test = { Suite = {} } }
function proxy.test.Suite.run(k) return (leaf(k)) end
for k = 1, n do outer(1000) end                 --= outer
pcall(fails)                                    --= fails
pcall(function() asd() end)                     --= function
after()                                         --= after
proxy.test.Suite.run(10)                        --= run
function proxy.test.Suite.hot()
  local s = 0
  for j = 1, 1e8 do s = s + j % 7 end
  return s
end
local s = proxy.test.Suite.hot()                --= hot
for k = 1, 40 do s = string.rep("abcdefgh", 1000000) end
print(#s, ...)
if arg[2] == "exit" then os.exit(3) end
