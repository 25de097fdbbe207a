"""Every relative link of a markdown file leads to a file that is there, and every anchor to a heading."""

from __future__ import annotations

import re
import subprocess
import tempfile
import unittest
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(`+)[^`].*?\1")
INLINE = re.compile(r"\]\(\s*<?([^)\s>]+)>?[^)]*\)")
DEFINED = re.compile(r"^ {0,3}\[[^\]]+\]:\s*<?([^\s>]+)", re.MULTILINE)
HTML = re.compile(r"<[^>]*\b(?:href|src|srcset)=\"([^\"\s]+)")
NAMED = re.compile(r"<[^>]*\b(?:id|name)=\"([^\"]+)\"")
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$", re.MULTILINE)
ELSEWHERE = re.compile(r"[a-z][a-z+.-]*:|//", re.IGNORECASE)


def links(text: str) -> Iterator[str]:
    """Targets within the repository, outside of code."""
    prose = CODE.sub("", FENCE.sub("", text))
    for form in (INLINE, DEFINED, HTML):
        yield from (target for target in form.findall(prose) if not ELSEWHERE.match(target))


def anchors(text: str) -> set[str]:
    """The names that GitHub gives to headings, and those that were given by hand."""
    prose = FENCE.sub("", text)
    seen: Counter[str] = Counter()
    found = set(NAMED.findall(prose))
    for heading in HEADING.findall(prose):
        words = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        found.add(f"{name}-{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return found


def broken(files: Iterable[Path]) -> Iterator[str]:
    for file in files:
        for link in links(file.read_text(encoding="utf-8")):
            path, _, anchor = unquote(link).partition("#")
            target = file.parent / path if path else file
            if not target.exists():
                yield f"{file}: {link}: there is no such file"
            elif anchor and anchor not in anchors(target.read_text(encoding="utf-8")):
                yield f"{file}: {link}: there is no such heading"


def markdown_files() -> list[Path]:
    """Those of the repository, without what a build leaves."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).exists()]


def contents(text: str) -> dict[str, list[str]]:
    """What a translation keeps as it is: the depth of headings, commands, what is set as code, and links to other pages."""
    commands = [re.split(r"\s{2,}", line.strip())[0] for line in text.splitlines() if re.match(r" {4}\S", line)]
    others = sorted(set(links(text)) - {"README.md", "README.zh.md"})
    code = sorted({match.group() for match in CODE.finditer(text)})
    return {"headings": re.findall(r"^#+", text, re.MULTILINE), "commands": commands, "links": others, "code": code}


class Links(unittest.TestCase):
    def test_every_link_of_the_repository_leads_somewhere(self) -> None:
        files = markdown_files()
        self.assertIn(ROOT / "README.md", files)
        self.assertEqual("\n".join(broken(files)), "")

    def test_both_readmes_have_the_same_content(self) -> None:
        english, chinese = (contents((ROOT / name).read_text(encoding="utf-8")) for name in ("README.md", "README.zh.md"))
        self.assertGreater(len(english["commands"]), 30)
        self.assertEqual(english, chinese)

    def test_what_is_broken_is_told(self) -> None:
        page = (
            "# A `page`, twice\n\n## A page twice\n\n[one](other.md) [two](#a-page-twice-1) [three](other.md#part \"title\")\n"
            "![gone](gone.svg) [gone](other.md#gone) [far](https://example.org/x.md) `[code](no.md)`\n"
            "<img src=\"lost.svg\">\n\n[name]: missing.md\n\n```\n[code](no.md)\n## Not a heading\n```\n[in code](#not-a-heading)\n"
        )
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "page.md").write_text(page, encoding="utf-8")
            (folder / "other.md").write_text("## Part\n", encoding="utf-8")
            told = [line.split(": ")[1:] for line in broken([folder / "page.md"])]
        file, heading = "there is no such file", "there is no such heading"
        expected = [["gone.svg", file], ["other.md#gone", heading], ["#not-a-heading", heading]]
        self.assertEqual(told, [*expected, ["missing.md", file], ["lost.svg", file]])


if __name__ == "__main__":
    unittest.main()
