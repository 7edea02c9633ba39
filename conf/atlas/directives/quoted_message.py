"""``.. quoted-message:: ADDRESS`` holds the message of an error that this build cannot raise, as somebody published it.

A page about an error shows the message that its code raised. Without a GPU some cannot be raised, and they are among those that
people look for most. Such a page quotes the message, and the reader sees where it is from. The search finds it like any other.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

CLASS = "quoted-message"


class QuotedMessage(SphinxDirective):
    """``.. quoted-message:: ADDRESS`` with the message, its class first, as its content."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self) -> list[nodes.Node]:
        self.assert_has_content()
        source = self.arguments[0]
        if urlsplit(source).scheme != "https":
            raise self.error(f"say where the message was seen: '{source}' is not the https address of a page")
        message = " ".join(line.strip() for line in self.content)
        block = nodes.literal_block(message, message, language="none", classes=[CLASS, "wrap"])
        link = nodes.reference("", source.removeprefix("https://"), refuri=source)
        note = nodes.paragraph(
            "", "This build cannot raise the message. It was seen here: ", link, classes=[f"{CLASS}-source"]
        )
        return [block, note]


def setup(app: Sphinx) -> None:
    app.add_directive("quoted-message", QuotedMessage)
