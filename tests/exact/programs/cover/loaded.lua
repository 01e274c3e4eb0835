local M = {}                                      --= 1

function M.used(x)                                --= 1
  if x > 1 then                                   --= 1000
    return x                                      --= 999
  end
  return 0                                        --= 1
end                                               --= 1

M.unused = function()
  return 1                                        --= .
end                                               --= 1

-- luacov: disable
function M.debug()
  return 2
end
-- luacov: enable
return M                                          --= 1
