"""Python's heapq: the same list as CPython's after every call, in any order of equal elements."""


def _siftdown(heap, start, at):
    item = heap[at]
    while at > start:
        parent = (at - 1) >> 1
        if not item < heap[parent]:
            break
        heap[at] = heap[parent]
        at = parent
    heap[at] = item


def _siftup(heap, at):
    end, start, item = len(heap), at, heap[at]
    child = 2 * at + 1
    while child < end:
        if child + 1 < end and not heap[child] < heap[child + 1]:
            child += 1
        heap[at] = heap[child]
        at = child
        child = 2 * at + 1
    heap[at] = item
    _siftdown(heap, start, at)


def heappush(heap, item):
    heap.append(item)
    _siftdown(heap, 0, len(heap) - 1)


def heappop(heap):
    last = heap.pop()
    if not heap:
        return last
    first, heap[0] = heap[0], last
    _siftup(heap, 0)
    return first


def heapreplace(heap, item):
    first, heap[0] = heap[0], item
    _siftup(heap, 0)
    return first


def heappushpop(heap, item):
    if heap and heap[0] < item:
        return heapreplace(heap, item)
    return item


def heapify(x):
    for i in reversed(range(len(x) // 2)):
        _siftup(x, i)


def nsmallest(n, iterable, key=None):
    return sorted(iterable, key=key)[: max(n, 0)]


def nlargest(n, iterable, key=None):
    return sorted(iterable, key=key, reverse=True)[: max(n, 0)]


def merge(*iterables, key=None, reverse=False):
    return iter(sorted([x for it in iterables for x in it], key=key, reverse=reverse))
