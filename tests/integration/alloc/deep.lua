-- Grows the Lua stack inside allocations: of the main coroutine, and of others.
local function down(n)
    if n == 0 then return 0 end
    return 1 + down(n - 1)
end
for i = 1, 200 do
    coroutine.wrap(function() down(5000) end)()
end
down(15000)
print("done")
