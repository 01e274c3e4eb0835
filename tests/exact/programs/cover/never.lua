-- Nobody loads it: four lines may have code.
local x = 1

if x then
  x = 2
end
return x
