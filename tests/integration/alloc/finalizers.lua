-- Finalizers that allocate, also while the VM is closed.
local made = 0
for i = 1, 20000 do
    local proxy = newproxy(true)
    getmetatable(proxy).__gc = function() made = made + #tostring({}) end
    if i > 19000 then _G["keep" .. i] = proxy end
end
collectgarbage()
print(made > 0)
