-- Chunks of one name, one after the other at one address, with their code on line 1 and on line 5.
jit.off()

function burn(n)
  local s = 0
  for i = 1, n do s = s + i % 7 end
  return s
end

collectgarbage("stop")
for i = 1, 400 do
  local f = load((i % 2 == 0 and "\n\n\n\n" or "") .. "burn(100000)", "=(two)")
  f()
  f = nil
  collectgarbage("collect")
  collectgarbage("stop")
end
print("reuse done")
