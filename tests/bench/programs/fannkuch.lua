-- Pancake flips over all permutations: fannkuch.lua [ROUNDS]. Small arrays of integers.
local function flips_of(p, q, n)
        for i = 1, n do q[i] = p[i] end
        local count, first = 0, q[1]
        while first ~= 1 do
                local i, j = 1, first
                while i < j do
                        q[i], q[j] = q[j], q[i]
                        i, j = i + 1, j - 1
                end
                count = count + 1
                first = q[1]
        end
        return count
end

local function rotate(p, r)
        local first = p[1]
        for i = 1, r - 1 do p[i] = p[i + 1] end
        p[r] = first
end

local function next_permutation(p, count, n)
        local r = 2
        while r <= n do
                rotate(p, r)
                count[r] = count[r] + 1
                if count[r] < r then return true end
                count[r] = 0
                r = r + 1
        end
        return false
end

local function run(n)
        local p, q, count = {}, {}, {}
        for i = 1, n do p[i], q[i], count[i] = i, i, 0 end
        local most, sum, sign = 0, 0, 1
        repeat
                local f = flips_of(p, q, n)
                if f > most then most = f end
                sum = sum + sign * f
                sign = -sign
        until not next_permutation(p, count, n)
        return most, sum
end

local most, sum
for i = 1, tonumber(arg[1] or 10) do most, sum = run(9) end
print(("most %d sum %d"):format(most, sum))
