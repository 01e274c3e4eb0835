-- Recursion of both kinds: traces that call themselves and traces that return below where they started.
local function fib(n)
        if n < 2 then
                return n
        end
        return fib(n - 1) + fib(n - 2)
end
local function count(n)
        if n == 0 then
                return 0
        end
        return 1 + count(n - 1)
end
local function tail(n, s)
        if n == 0 then
                return s
        end
        return tail(n - 1, (s * 3 + n) % 1009)
end
local function ack(m, n)
        if m == 0 then return n + 1 end
        if n == 0 then return ack(m - 1, 1) end
        return ack(m - 1, ack(m, n - 1))
end
local s, stop = 0, os.clock() + tonumber(arg[1])
while os.clock() < stop do
        s = s + fib(20)
        for _ = 1, 50 do s = s + count(150) end
        for _ = 1, 50 do s = s + tail(300, 1) end
        s = s + ack(2, 30)
end
