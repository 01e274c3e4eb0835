-- util

local function plot(i)
  local x = i * 2
  for k = 1, i do x = x + k end
  return x
end

return { plot = plot }
