-- Frees all that it has made, and ends without closing its VM.
local t = {}
for i = 1, 200 do t[i] = ("x"):rep(100000) .. i end
t = nil
collectgarbage()
collectgarbage()
os.exit(0)
