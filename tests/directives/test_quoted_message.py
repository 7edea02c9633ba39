"""A message from elsewhere is shown with its source, or not at all."""

from __future__ import annotations

import pytest

from tiny.tiny_site import build, written

PAGE = """# A page

```{quoted-message} ADDRESS
RuntimeError: CUDA error: no kernel image
is available
```
"""


def test_it_stands_in_one_piece_with_its_source(tmp_path) -> None:
    done = build(written(tmp_path, {"docs/page.md": PAGE.replace("ADDRESS", "https://example.org/threads/1")}))
    assert done.code == 0, done.output
    html = (done.out / "page.html").read_text(encoding="utf-8")
    assert "RuntimeError: CUDA error: no kernel image is available" in html
    assert '<a class="reference external" href="https://example.org/threads/1">example.org/threads/1</a>' in html


@pytest.mark.parametrize("address", ["a thread somewhere", "http://example.org"])
def test_without_an_address_it_is_an_error(tmp_path, address: str) -> None:
    done = build(written(tmp_path, {"docs/page.md": PAGE.replace("ADDRESS", address)}))
    assert done.code != 0
    assert "page.md:3" in done.output and "say where the message was seen" in done.output
