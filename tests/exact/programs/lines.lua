-- How often each line is entered stands behind "--=": '.' is a line that could be executed, and is not. A line without has no code.
local N = tonumber(arg and arg[1]) or 1000        --= 1
local sum = 0                                     --= 1

local function one(x) return x + 1 end            --= N+1

local function choose(x)                          -- the closure is made at its end
  if x % 4 == 0 then                              --= N
    return "four"                                 --= N/4
  elseif x % 2 == 0 then                          --= 3*N/4
    return "two"                                  --= N/4
  else
    return "odd"                                  --= N/2
  end
end                                               --= 1

local function never(a, b)
  local c = a + b                                 --= .
  return c                                        --= .
end                                               --= 1

for i = 1, N do                                   --= N+1
  sum = one(sum)                                  --= N
  choose(i)                                       --= N
end

local i = 0                                       --= 1
while i < N do                                    --= N+1
  i = i + 1                                       --= N
  if i == N / 2 then                              --= N
    sum = sum + 1                                 --= 1
  end                                             --= 1 (the jump back)
end

repeat                                            --= N/2
  i = i - 1                                       --= N/2
until i == N / 2                                  --= N/2

for k, v in pairs({ 1, 2, 3 }) do                 --= 4
  sum = sum + v                                   --= 3
end
for k, v in ipairs({ 1, 2, 3, 4 }) do             --= 3
  if v == 3 then break end                        --= 3
  sum = sum + v                                   --= 2
end

local function fails(x)
  if x % 10 == 0 then                             --= N
    error("ten")                                  --= N/10
  end
  return x                                        --= 9*N/10
end                                               --= 1

local failed = 0                                  --= 1
for x = 1, N do                                   --= N+1
  if not pcall(fails, x) then                     --= N
    failed = failed + 1                           --= N/10
  end
end

local function count(n)
  for k = 1, n do coroutine.yield(k) end          --= N
end                                               --= 2

local resume = coroutine.wrap(count)              --= 1
for x = 1, N do                                   --= N+1
  sum = sum + resume(N)                           --= N
end
resume()                                          --= 1

local function rest(...)
  local n = select("#", ...)                      --= N
  if n > 2 then                                   --= N
    return n,                                     --= .
      ...                                         --= .
  end
  return ...                                      --= N
end                                               --= 1
for x = 1, N do rest(x, x) end                    --= N

local t = setmetatable({}, {                      --= 2 (and the call, behind the functions)
  __index = function(_, k)
    return k                                      --= N
  end,                                            --= 1
  __add = function(a, b) return b end,            --= 2
})
for x = 1, N do                                   --= N+1
  sum = sum + t[x]                                --= N
end
sum = sum + (t + 1)                               --= 1

if sum < 0 then                                   --= 1
  never(1, 2)                                     --= .
  print("never")                                  --= .
end
print(sum, failed)                                --= 1
