"""Templates of pages and messages: what is shown is escaped, and what is not there is an error."""

from __future__ import annotations

from functools import cache

import jinja2
from markupsafe import Markup


@cache
def page_template(name: str, package: str = "local_cloaking.audit") -> jinja2.Template:
    """Return a template from the folder ``templates`` of a package.

    Examples
    --------
    >>> page_template("message.html.j2").name
    'message.html.j2'
    """
    return _environment(package).get_template(name)


@cache
def _environment(package: str) -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader(package, "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def as_markup(drawing: str) -> Markup:
    """Return a drawing of `local_cloaking.audit.figures` as what a template shows without escaping it again."""
    # Safe: drawn from numbers, and escaped where it is drawn.
    return Markup(drawing)  # noqa: S704  # nosec B704
