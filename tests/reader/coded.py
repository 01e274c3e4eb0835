"""Coded columns of a trace, by luasample-trace(5), CODED COLUMNS, alone. Used by chunks.py."""
MASK, MASK32 = (1 << 64) - 1, (1 << 32) - 1
MAX_ROWS = 16384
SAMPLE, STACK = 2, 9
PAIRED = ("event", "thread", "vm", "coroutine", "zone", "vmstate", "flags", "weight", "label", "value", "type",
          "lived")


class Bad(Exception):
    """The bytes are not a coded column."""


class Bits:
    """The bits of a column, and the slots where their chances are learnt."""
    def __init__(self, data, rows):
        if rows > MAX_ROWS or len(data) < 2 or data[0] > 32:
            raise Bad("a coded column has too many rows or bits, or too few bytes")
        self.bits, self.data, self.at = data[0], data, 1
        k = 10
        while k < 16 and 1 << k < 16 * rows:
            k += 1
        self.shift = 32 - k
        self.chances, self.seen = {}, {}
        self.low, self.high, self.x = 0, MASK32, 0
        for _ in range(4):
            self.shift_in()

    def shift_in(self):
        byte = self.data[self.at] if self.at < len(self.data) else 0
        self.at += 1
        self.x = (self.x << 8 | byte) & MASK32

    def split(self, p):
        mid = self.low + ((self.high - self.low) * p >> 16)
        if self.x <= mid:
            bit, self.high = 1, mid
        else:
            bit, self.low = 0, mid + 1
        while self.low >> 24 == self.high >> 24:
            self.shift_in()
            self.low, self.high = self.low << 8 & MASK32, self.high << 8 & MASK32 | 255
        return bit

    def slot(self, context, node):
        return ((context * 2654435761 + node) * 2246822519 & MASK32) >> self.shift

    def memo(self, context):
        return self.slot(0, context & MASK32) >> 2

    def bit(self, context, node):
        s = self.slot(context, node)
        p, n = self.chances.get(s, 32768), self.seen.get(s, 0)
        bit, r = self.split(p), 65536 // (n + 2)
        p = p + ((65535 - p) * r >> 16) if bit else p - (p * r >> 16)
        self.chances[s], self.seen[s] = min(max(p, 32), 65503), min(n + 1, 30)
        return bit

    def tree(self, context):
        node = 1
        v = 0
        for _ in range(self.bits):
            bit = self.bit(context, node & MASK32)
            node, v = 2 * node + bit, 2 * v + bit
        return v

    def number(self, context):
        n = 0
        while n < 64 and self.bit(context, n):
            n += 1
        if n == 0:
            return 0
        v = 1
        for i in range(1, n):
            v = 2 * v + (self.bit(context, 128 + 8 * n + v) if i <= 3 else self.split(32768))
        return v

    def end(self):
        if self.at != len(self.data) + 3:
            raise Bad("a coded column has other bytes than its rows need")


def ids(b, rows):
    out, greatest, new = [], 0, 0
    for _ in range(rows):
        new = b.bit(1, new)
        if new:
            greatest = (greatest + b.number(2) + 1) & MASK
        out.append(greatest if new else b.tree(3))
    return out


def paired(b, stacks):
    out, before, last = [], 0, {}
    for stack in stacks:
        m = b.memo(stack)
        known = m in last
        guess = last[m] if known else before
        g = min(guess, 7)
        if not b.bit(4, 64 * known + 8 * g + min(before, 7)):
            guess = b.tree(8 + 8 * known + (g if b.bits <= 3 else 0))
        last[m] = before = guess
        out.append(guess)
    return out


def steps(b, threads):
    out, hit, memos = [], 1, {}
    for thread in threads:
        m = b.memo(thread)
        last, lag = memos.get(m, (0, 0))
        c, error = min(max(lag, -3), 3) + 3, 0
        hit = b.bit(4, 2 * c + hit)
        if not hit:
            z = (b.number(8 + c) + 1) & MASK
            error = (z >> 1) ^ -(z & 1)
        last, lag = (last + 16 + error) & MASK, lag + error
        memos[m] = last, lag if -99 <= lag <= 99 else 0
        out.append(last)
    return out


def stacks(b, first, rows):
    parents, locations = [], []
    for i in range(rows):
        own = first + i
        parent = own - 1
        if not b.bit(1, locations[-1] & MASK32 if i else 0):
            parent = (own - 2 - b.number(2)) & MASK
        caller = locations[parent - first] + 1 if first <= parent < own else 0
        parents.append(parent)
        locations.append(b.tree(32 + caller & MASK32))
    return parents, locations


def decode(kind, coded, columns, first, count):
    """Adds the columns whose bytes are in coded, a dict by name, to columns."""
    def column(name):
        return columns.get(name) or [0] * count

    if kind == STACK and set(coded) == {"parent"} and "location" not in columns:
        b = Bits(coded["parent"], count)
        columns["parent"], columns["location"] = stacks(b, first, count)
        b.end()
        return
    if kind != SAMPLE or set(coded) - set(PAIRED) - {"stack", "time"}:
        raise Bad("a column is coded that may not be")
    for name in ["stack"] + [n for n in PAIRED if n in coded] + ["time"]:
        if name in coded:
            b = Bits(coded[name], count)
            columns[name] = (ids(b, count) if name == "stack" else steps(b, column("thread")) if name == "time" else
                             paired(b, column("stack")))
            b.end()
