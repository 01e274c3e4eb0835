"""luasample jit: why code is not compiled, against programs of which the reason and its share are known, and what LuaJIT
itself says of its attempts (jit.v)."""
import re

import support as s
from support import check

PROGRAM = s.HERE / "reasons.lua" if (s.HERE / "reasons.lua").exists() else s.ROOT / "tests/lua/reasons.lua"
SECONDS = 1
