"""collections.deque with a maxlen; without one a deque is a list."""


class BoundedDeque:
    def __init__(self, iterable=(), maxlen=None):
        self.maxlen = maxlen
        self._items = []
        self.extend(iterable)

    def _trim(self, left):
        while len(self._items) > self.maxlen:
            self._items.pop(0 if left else -1)

    def append(self, x):
        self._items.append(x)
        self._trim(True)

    def appendleft(self, x):
        self._items.insert(0, x)
        self._trim(False)

    def extend(self, iterable):
        for x in iterable:
            self.append(x)

    def extendleft(self, iterable):
        for x in iterable:
            self.appendleft(x)

    def pop(self):
        return self._items.pop()

    def popleft(self):
        return self._items.pop(0)

    def rotate(self, n=1):
        self._items.rotate(n)

    def clear(self):
        self._items.clear()

    def copy(self):
        return BoundedDeque(self._items, self.maxlen)

    def count(self, x):
        return self._items.count(x)

    def index(self, x):
        return self._items.index(x)

    def insert(self, i, x):
        if len(self._items) >= self.maxlen:
            raise IndexError("deque already at its maximum size")
        self._items.insert(i, x)

    def remove(self, x):
        self._items.remove(x)

    def reverse(self):
        self._items.reverse()

    def __len__(self):
        return len(self._items)

    def __iter__(self):
        return iter(list(self._items))

    def __getitem__(self, at):
        return self._items[at]

    def __setitem__(self, at, x):
        self._items[at] = x

    def __contains__(self, x):
        return x in self._items

    def __eq__(self, other):
        return list(self) == list(other)
