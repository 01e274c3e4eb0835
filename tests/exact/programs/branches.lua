-- How often each way of a branch is taken stands behind "--=", a pair for each comparison of the line in its order: on with what follows
-- in the line or block, and past it; '.' is one that was not reached. N is 1000. What errors end, and loops that compiled code leaves, is among it.
local N = tonumber(arg and arg[1]) or 1000        --= 1,0 1,0
local sum = 0

local function choose(x)
  if x % 4 == 0 then                              --= N/4,3*N/4
    sum = sum + 1
  elseif x % 2 == 0 then                          --= N/4,N/2
    sum = sum + 2
  end
  if x > 0 and x <= N / 2 then                    --= N,0 N/2,N/2
    sum = sum + 1
  end
  if x == 1 or x == 2 then                        --= N-1,1 1,N-2
    sum = sum + 1
  end
  return x > 3 and "more" or "less"               --= N-3,3
end

local function never(a, b)
  if a and b then return a end                    --= .,. .,.
  while a do a = b end                            --= .,.
end

for i = 1, N do
  choose(i)
end

local i = 0
while i < N do                                    --= N,1
  i = i + 1
  if i == N / 2 then sum = 0 end                  --= 1,N-1
end

repeat
  i = i - 1
  if i == 3 then break end                        --= 1,N-4
until i < 0                                       --= 0,N-4

for k, v in pairs({ 1, 2, 3 }) do                 --= 1,3
  if v > 2 then sum = sum + v end                 --= 1,2
end
for word in ("a b c d"):gmatch("%a") do           --= 1,4
  if not word then sum = 0 end                    --= 0,4
end
for _ in pairs({}) do sum = 0 end                 --= 1,0
for _, v in ipairs({ 5, 6 }) do                   --= 0,1
  if v then break end                             --= 1,0
end

local function fails(x)
  if x % 3 == 0 then error("third") end           --= N//3,N-N//3
  return not x
end
for k = 1, N do
  pcall(fails, k)
end
local equal = sum == 0                            --= 1,0
print(sum, i, equal)
