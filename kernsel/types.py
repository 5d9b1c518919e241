"""Types that many modules name."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int, str], None]
"""Called as ``progress(done, total, text)``."""
