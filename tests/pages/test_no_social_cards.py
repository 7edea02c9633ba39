"""Cards are not drawn, matplotlib is not imported for them, and who asks for them is told what to do."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest
from sphinx.errors import ConfigError

from atlas.pages.no_social_cards import check
from pages.tiny_site import ROOT


@pytest.mark.parametrize("asked", [{}, {"enable": True}, {"image": "card.png"}])
def test_asking_for_cards_is_an_error(asked: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"take atlas\.pages\.no_social_cards out of the extensions"):
        check(None, SimpleNamespace(ogp_social_cards=asked))


def test_doing_without_is_not() -> None:
    check(None, SimpleNamespace(ogp_social_cards={"enable": False}))


def test_matplotlib_is_not_imported() -> None:
    """With sphinxext-opengraph alone it is: the module that is put in the place of the cards' has its name still."""
    code = (
        "import sys; from types import SimpleNamespace; import atlas.pages.no_social_cards as cards; "
        "{setup}; import sphinxext.opengraph; print('matplotlib' in sys.modules)"
    )
    setup = "cards.setup(SimpleNamespace(connect=lambda *_: None))"
    for prepared, imported in ((setup, "False"), ("pass", "True")):
        command = [sys.executable, "-c", code.format(setup=prepared)]
        done = subprocess.run(command, cwd=ROOT / "conf", capture_output=True, text=True, check=True)
        assert done.stdout.strip() == imported
