-- A trace with more than a thousand exits: guards of types of 20 tables and of all that is in them. guards.lua ROUNDS
local rounds, terms, all = tonumber(arg[1] or 20), {}, {}
for k = 1, 20 do
  all[k] = {}                                   -- of equal tables, whose constants are shared
  for j = 1, 30 do
    all[k]["f" .. j] = k * j
    terms[#terms + 1] = "all[" .. k .. "].f" .. j
  end
end
local sum = assert(loadstring("local all, n = ... local s = 0 for i = 1, n do s = s + (" .. table.concat(terms, " + ") ..
                              ") end return s", "=sum"))
local function add(n) return sum(all, n) end
local s = add(rounds)
for i = 1, rounds do
  all[20].f30 = i % 50 == 0 and "7" or i        -- a string: its guard fails
  s = s + add(10)
end
print(s)
