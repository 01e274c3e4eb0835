-- Strings of known sizes, for as long as it runs; the last of each hundred is kept.
local kept, n, x, y, z = {}, 0, ("x"):rep(3000), ("y"):rep(1000), ("z"):rep(500)
local function big(i)
  return x .. i
end
local function small(i)
  return y .. i
end
local function keep(i)
  local text = z .. i
  kept[#kept + 1] = text
end
io.write("begin\n")
io.flush()
local until_ = os.time() + tonumber(arg[1])
local last
while os.time() < until_ do
  for _ = 1, 100 do
    n = n + 1
    last = big(n)
    last = small(n)
    if n % 100 == 0 then keep(n) end
  end
end
