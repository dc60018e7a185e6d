r"""Formulas as MathML, which browsers set themselves, from a small part of TeX.

Letters, numbers, Greek and operators stand for themselves; `^`, `_` and `{…}` are as in TeX; `\frac{a}{b}`, `\sqrt{a}`
and `\text{…}` too. Any other `\name` is an upright name such as sin, and `\,` and `\quad` are spaces.
"""

import html
import re
from dataclasses import dataclass

TOKEN = re.compile(r"\\text\{[^}]*\}|\\[A-Za-z]+|\\,|[0-9]+(?:\.[0-9]+)?|\s+|.")
SPACES = {"\\,": "0.17em", "\\quad": "0.9em"}
LARGE = "∑∫"
FENCES = "()[]{}|"


def mathml(formula: str) -> str:
    """A `math` element for a formula; a mistake in it, which is ours, is a `ValueError`."""
    parser = _Parser([token for token in TOKEN.findall(formula) if not token.isspace()], formula)
    return f'<math displaystyle="true">{parser.row()}</math>'


@dataclass
class _Parser:
    tokens: list[str]
    formula: str
    at: int = 0

    def row(self, end: str | None = None) -> str:
        """Everything up to a closing brace, or to the end."""
        parts: list[str] = []
        while self.at < len(self.tokens) and self.tokens[self.at] != "}":
            parts.append(self.scripted())
        if (self.tokens[self.at] if self.at < len(self.tokens) else None) != end:
            raise ValueError(f"the braces of {self.formula!r} do not match")
        return "<mrow>" + "".join(parts) + "</mrow>"

    def scripted(self) -> str:
        """One thing with what is above and below it."""
        token = self.tokens[self.at]
        base = self.atom()
        scripts: dict[str, str] = {}
        while self.at < len(self.tokens) and self.tokens[self.at] in "^_":
            kind = self.take()
            scripts[kind] = self.atom()
        low, high = ("under", "over") if token in LARGE else ("sub", "sup")
        match scripts.get("_"), scripts.get("^"):
            case None, None:
                return base
            case below, None:
                return f"<m{low}>{base}{below}</m{low}>"
            case None, above:
                return f"<m{high}>{base}{above}</m{high}>"
            case below, above:
                return f"<m{low}{high}>{base}{below}{above}</m{low}{high}>"

    def atom(self) -> str:
        token = self.take()
        if token == "{":
            inner = self.row("}")
            self.take()
            return inner
        if token == "\\frac":
            return f"<mfrac>{self.atom()}{self.atom()}</mfrac>"
        if token == "\\sqrt":
            return f"<msqrt>{self.atom()}</msqrt>"
        if token.startswith("\\text"):
            return f"<mtext>{html.escape(token[6:-1]).replace(' ', '&nbsp;')}</mtext>"
        if token in SPACES:
            return f'<mspace width="{SPACES[token]}"></mspace>'
        if token.startswith("\\"):
            return f'<mi mathvariant="normal">{html.escape(token[1:])}</mi>'
        if token[0].isdigit():
            return f"<mn>{token}</mn>"
        if token.isalpha() or token in "∇∂":
            upright = ' mathvariant="normal"' if token in "ΔΛ∇∂" else ""
            return f"<mi{upright}>{token}</mi>"
        if token in FENCES:
            return f'<mo stretchy="false" lspace="0" rspace="0">{token}</mo>'
        return f"<mo>{html.escape(token.replace('-', '−').replace('*', '∗'))}</mo>"

    def take(self) -> str:
        if self.at >= len(self.tokens):
            raise ValueError(f"{self.formula!r} ends where something is missing")
        self.at += 1
        return self.tokens[self.at - 1]
