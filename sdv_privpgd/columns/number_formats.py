"""How numbers are written as text. Public; what it reads is one cell, without regard to others."""

import re
from dataclasses import dataclass

from sdv_privpgd.base import cached_property
from sdv_privpgd.base.domain import FieldsAlone

_EXAMPLE = re.compile(
    "(?P<before>[^0-9]*)1(?P<group>[., '’\u00a0\u2009\u202f]?)234((?P<point>[.,])(?P<ends>50*))?"
    "(?P<after>[^0-9]*)"
)
_PERCENT = re.compile(
    "(?P<before>[^0-9]*)[0-9]{1,3}((?P<point>[.,])(?P<ends>[0-9]+))?(?P<after>[^0-9]*%[^0-9]*)"
)
_ALIKE = str.maketrans("\u00a0\u2009\u202f’\u2212", "   '-")
_SIGNS = {"": "", "+": "", "-": "-", "()": "-"}


@dataclass(frozen=True)
class NumberFormat(FieldsAlone):
    """A format by its example: 1234.5, or -1234.5 to show how negative numbers are written.

    Of a percentage any number below 1,000 is one, such as "12 %" or "12.5%".

    Text is read with or without what stands before and after the digits, and with any usual sign: a
    hyphen, a true minus or parentheses. All spaces are the same, and both apostrophes. Raises
    ``ValueError`` for an example of another number.
    """

    example: str

    def __post_init__(self) -> None:
        _ = self.parts

    @property
    def places(self) -> int:
        """The number of decimal places that are written."""
        return len(self.parts["ends"])

    def plain(self, text: str) -> str:
        """A number as Python writes it. Any other text gives a text that is no number."""
        found = self._pattern.fullmatch(text.translate(_ALIKE).strip())
        if found is None:
            return ""
        one, two, whole, decimals, three, four = found.groups("")
        number = whole.replace(self.parts["group"].translate(_ALIKE), "")
        return f"{_SIGNS.get(one + two + three + four, 'no ')}{number}.{decimals}".removesuffix(".")

    @cached_property
    def parts(self) -> dict[str, str]:
        """What stands before, between and after the digits, as in the example."""
        found = _EXAMPLE.fullmatch(self.example) or _PERCENT.fullmatch(self.example)
        if found is None or found.groupdict().get("group", "") == found["point"]:
            raise ValueError
        return {"group": "", **found.groupdict("")}

    @cached_property
    def around(self) -> tuple[str, str]:
        """What stands before and after the digits of a number that is not negative."""
        before, after = self.parts["before"], self.parts["after"]
        return re.sub("[-\u2212(]", "", before), re.sub("^[-\u2212]|[)]", "", after)

    @cached_property
    def _pattern(self) -> re.Pattern:
        before, after = (re.escape(each.translate(_ALIKE).strip()) for each in self.around)
        group = re.escape(self.parts["group"].translate(_ALIKE))
        whole = f"[0-9]{{1,3}}(?:{group}[0-9]{{3}})+|[0-9]+" if group else "[0-9]+"
        point = re.escape(self.parts["point"] or (",", ".")[group != re.escape(".")])
        return re.compile(
            f"([-+(]?) ?(?:{before})? ?([-+(]?) ?({whole}|)(?:{point}([0-9]*))?"
            f"([-)]?) ?(?:{after})? ?([-)]?)"
        )
