"""Masks in a notebook: pictures, one cell step by step, the program's answers as objects, and one file to share.

Every function takes a mask in any form: a mod with lengths, a BlockMask, a design, the name of a preset or the path
of a
document. Results have `_repr_html_`, `.to_dict()` and a text form.

Invariant: what is shown says what it is of: lengths, batch entry, head, whether shares are exact, and the version.
"""

from __future__ import annotations

from .._torch import needs

needs(__name__)

from .explaining import Explanation, explain  # noqa: E402
from .program import Answer, open_window, quality, race, suggest, verdict  # noqa: E402
from .showing import Shown, share, show  # noqa: E402
from .subject import Subject  # noqa: E402

__all__ = [
    "Answer",
    "Explanation",
    "Shown",
    "Subject",
    "explain",
    "open_window",
    "quality",
    "race",
    "share",
    "show",
    "suggest",
    "verdict",
]
