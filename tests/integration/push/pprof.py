"""Reads profile.proto and Pyroscope's PushRequest, as tests of push and of the daemon's sinks want them."""
import collections
import gzip

from support import Fail, check


def fields(data):
    """(number, value) of a message: ints and bytes."""
    at = 0

    def varint():
        nonlocal at
        v = shift = 0
        while True:
            b = data[at]
            at += 1
            v |= (b & 127) << shift
            shift += 7
            if b < 128:
                return v
    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, varint()
        elif tag & 7 == 2:
            n = varint()
            check(at + n <= len(data), "a field is longer than its message")
            yield tag >> 3, data[at:at + n]
            at += n
        else:
            raise Fail("wire type %d" % (tag & 7))


def numbers(data):
    v = shift = 0
    for b in data:
        v |= (b & 127) << shift
        shift += 7
        if b < 128:
            yield v
            v = shift = 0


class Profile:
    """A profile.proto: samples as (functions from the leaf, values, labels)."""
    def __init__(self, data):
        raw = gzip.decompress(data)
        self.size = len(raw)
        all = collections.defaultdict(list)
        for n, v in fields(raw):
            all[n].append(v)
        self.strings = [v.decode() for v in all[6]]
        self.time, self.duration = (all[n][0] if n in all else 0 for n in (9, 10))
        types = [dict(fields(t)) for t in all[1]]
        self.types = [(self.strings[t[1]], self.strings[t[2]]) for t in types]
        functions = {f[1]: self.strings[f[2]] for f in (dict(fields(v)) for v in all[5])}
        where = {}
        for v in all[4]:
            f = dict(fields(v))
            where[f[1]] = functions[dict(fields(f[4]))[1]]
        check(sorted(where) == list(range(1, len(where) + 1)), "ids of locations are not dense")
        self.samples = []
        for v in all[2]:
            stack, values, labels = [], [], []
            for n, x in fields(v):
                if n == 1:
                    stack += [where[i] for i in numbers(x)]
                elif n == 2:
                    values += numbers(x)
                else:
                    label = dict(fields(x))
                    labels.append((self.strings[label[1]], self.strings[label[2]]))
            self.samples.append((tuple(stack), values, labels))

    def sum(self, i=-1):
        return sum(v[i] for _, v, _ in self.samples)


def series_of(body):
    """Labels, profiles and ids of a PushRequest."""
    labels, profiles, ids = {}, [], []
    for n, series in fields(body):
        check(n == 1, "field %d of the request" % n)
        for k, v in fields(series):
            f = dict(fields(v))
            if k == 1:
                labels[f[1].decode()] = f[2].decode()
            else:
                profiles.append(Profile(f[1]))
                ids.append(f[2].decode())
    return labels, profiles, ids
