-- jit.zone with a stack for each coroutine: see zones.c. Loaded into a VM by the agent.
local own, cur, names, most = ...
local ok, ffi = pcall(require, 'ffi')
if not ok then return end
own, cur = ffi.cast('int32_t *', own), ffi.cast('int32_t *', cur)
local function unmix(n, co)
  for i = n, 1, -1 do if own[i] == co then
    for j = i, n - 1 do own[j], names[j] = own[j + 1], names[j + 1] end own[0] = n - 1 return end end
  if n > 0 then own[0] = n - 1 end
end
local remove = table.remove

return setmetatable({
  flush = function(t)
    for i = #t, 1, -1 do t[i] = nil end own[0] = 0
  end,
  get = function(t)
    return t[#t]
  end
}, {
  __call = function(t, zone)
    if zone then
      t[#t + 1] = zone local n = own[0] + 1 if n < most then names[n] = zone own[n] = cur[0] own[0] = n end
    else local n = own[0] if own[n] == cur[0] then own[0] = n - 1 else unmix(n, cur[0]) end
      return (assert(remove(t), 'empty zone stack'))
    end
  end
})
