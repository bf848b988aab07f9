"""Runs the examples of a page, in the order of the page and in one namespace: `python package_pages.py PAGE.md`."""

import linecache
import re
import sys
from pathlib import Path

import package

package.found()
page = Path(sys.argv[1])
text = page.read_text(encoding="utf-8")
examples = [(m.start(1), m.group(1)) for m in re.finditer(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)]
assert len(examples) > 5, "the page was read"
space = {}
for start, example in examples:
    name = f"{page.name}, line {text.count(chr(10), 0, start) + 1}"
    linecache.cache[name] = (len(example), None, example.splitlines(True), name)
    exec(compile(example, name, "exec"), space)
print(f"{len(examples)} examples ran")
