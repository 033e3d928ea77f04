"""Measures the house: lines, files, constants, and how the package's rooms import each other.

    python tests/house.py

A room is a folder or a module directly below the package. An arrow is a pair of rooms of which one
imports from the other, anywhere in its files. Rooms that reach each other in a circle count as one
room for the floors, which are the rooms of the longest way down.
"""

import ast
import io
import tokenize
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "sdv_privpgd"


def lines(folder: Path) -> int:
    return sum(len(path.read_text().splitlines()) for path in folder.rglob("*.py"))


def lines_of_code(text: str) -> int:
    """Lines with a token that is neither a comment nor a docstring."""
    strings = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for line in range(node.lineno, node.end_lineno + 1)
    }  # fmt: skip
    empty = (
        tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
        tokenize.ENDMARKER,
    )  # fmt: skip
    found = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in empty:
            found.update(range(token.start[0], token.end[0] + 1))
    return len(found - strings)


def _is_number(node: ast.expr) -> bool:
    """Whether an expression is made of numbers alone, as ``2**20`` or ``(0.1, 0.5)`` are."""
    parts = [
        each
        for each in ast.walk(node)
        if isinstance(each, ast.expr) and not isinstance(each, ast.Tuple | ast.List)
    ]
    is_made_of = all(
        isinstance(each, ast.BinOp | ast.UnaryOp)
        or (isinstance(each, ast.Constant) and type(each.value) in (int, float))
        or (isinstance(each, ast.Call) and getattr(each.func, "id", "") == "Fraction")
        or (isinstance(each, ast.Name) and each.id == "Fraction")
        for each in parts
    )
    return is_made_of and any(isinstance(each, ast.Constant) for each in parts)


def constants(text: str) -> list[str]:
    """The names at module level that stand for numbers."""
    found = []
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value and _is_number(node.value):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found += [
                each.id
                for target in targets
                for each in ast.walk(target)
                if isinstance(each, ast.Name)
            ]
    return found


def imports(package: Path = PACKAGE) -> dict[str, set[str]]:
    """The rooms that each room imports from."""
    rooms: dict[str, set[str]] = {}
    for path in package.rglob("*.py"):
        parts = path.relative_to(package).with_suffix("").parts
        room = parts[0]
        if room.startswith("_"):  # the package's own plumbing, which imports nothing
            continue
        found = rooms.setdefault(room, set())
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                continue
            found |= {name.split(".")[1] for name in names if name.startswith(f"{package.name}.")}
    return {room: (found & rooms.keys()) - {room} for room, found in rooms.items()}


def reached(rooms: dict[str, set[str]], room: str) -> set[str]:
    found, left = set(), [room]
    while left:
        for each in rooms[left.pop()] - found:
            found.add(each)
            left.append(each)
    return found


def circles(rooms: dict[str, set[str]]) -> list[set[str]]:
    """The sets of two rooms and more that all reach each other."""
    reach = {room: reached(rooms, room) for room in rooms}
    groups = {
        frozenset({room} | {each for each in reach[room] if room in reach[each]}) for room in rooms
    }
    return [set(group) for group in groups if len(group) > 1]


def floors(rooms: dict[str, set[str]]) -> int:
    group_of = {room: frozenset({room}) for room in rooms}
    for circle in circles(rooms):
        group_of |= dict.fromkeys(circle, frozenset(circle))

    @cache
    def height(group: frozenset[str]) -> int:
        below = {group_of[each] for room in group for each in rooms[room]} - {group}
        return 1 + max(map(height, below), default=0)

    return max(map(height, group_of.values()))


def measured() -> dict[str, int]:
    texts = [path.read_text() for path in PACKAGE.rglob("*.py")]
    rooms = imports()
    return {
        "package lines": lines(PACKAGE),
        "package lines of code": sum(map(lines_of_code, texts)),
        "package files": len(texts),
        "test lines": lines(ROOT / "tests"),
        "constants": sum(len(constants(text)) for text in texts),
        "rooms": len(rooms),
        "floors": floors(rooms),
        "circles": len(circles(rooms)),
        "arrows": sum(map(len, rooms.values())),
        "README lines": len((ROOT / "README.md").read_text().splitlines()),
    }


if __name__ == "__main__":
    for name, number in measured().items():
        print(f"{name:24}{number:>8,}")  # noqa: T201
