-- Calls of all kinds: behind "--=" how often a function is called, N is arg 1.
local N = tonumber(arg[1])
local function spin() local x = 0 for i = 1, 2000 do x = x + i end return x end --= 4*N-1
local function leaf() local x = spin() return x end                 --= 2*N-1
local function deep(n) if n > 0 then deep(n - 1) end end        --= 11*N
local function tail(n) if n == 0 then return end return tail(n - 1) end --= 6*N
local function thrower() spin() error("thrown") end     --= N
local function varied(...) leaf() return select("#", ...) end   --= N
local function body() while true do spin() coroutine.yield() leaf() end end     --= 1
local function last() jit.on() return 1 end             --= 1
local resume = coroutine.wrap(body)
for i = 1, N do
        deep(10)
        tail(5)
        assert(not pcall(thrower))
        assert(varied(1, 2, nil) == 3)
        resume()
end
print(last())
