"""Texts such as agents write to files: code, patterns, markup and prose, with every character that JSON minds."""

from __future__ import annotations

from random import Random

LINES = (
    "def load(path: Path, *, strict: bool = True) -> dict[str, int]:",
    '    """Read "it" and return it."""',
    '    print("%s\\n" % name, file=sys.stderr)',
    "    return {key: value for key, value in rows.items() if key != 'id'}",
    '    raise ValueError(f"{path!r}: {error}") from None',
    "",
    "\tif (a && b || !c) { return *p++ << 2; }",
    '\tprintf("%d\\t%s\\\\\\n", n, "a\\"b");',
    "#define PAIR(a, b) \\",
    "\tchar q = '\\'', z = '\\0';",
    'const s = `${a}: "${b}"`; // it\'s } ] , : fine',
    "export const f = async ({ a, b = [1, 2,] }) => ({ ...a, [b]: null });",
    '{"name": "demo", "list": [1, 2, {"x": null}], "on": true}',
    '  "scripts": { "dev": "vite --port 80", "test": "vitest" },',
    're = r\'^\\s*(\\w+)\\s*=\\s*"([^"]*)"$\'',
    "\\begin{table} \\textbf{x} \\\\ \\hline \\newline",
    "C:\\temp\\new\\readme.txt",
    'grep -rn "it\'s" src | sed \'s/\\//|/g\' && echo "$HOME"',
    "awk '{ print $1 }' <<EOF > out.txt",
    '<div class="a" onclick=\'f("x")\'>1 &lt; 2 &amp; 3</div>',
    '<invoke name="f"><parameter name="a">1</parameter></invoke>',
    "```json",
    "{}",
    "```",
    "- [ ] “quoted” — l’été, naïve, ﬁn…",
    "日本語のテキスト 🍸 👩‍👩‍👧",
    "e\u0301 \u00a0 \u200d \u2028 \ufeff",
    "tail   ",
    "NaN, Infinity, None, True, undefined, /* c */ // d",
    "\x0c\x1b[0m",
    "}}]]}",
    "path, oldText, newText, content, command: arguments",
)
"""Lines to draw from."""

WORDS = ("alpha", "beta", "gamma", "delta", "omega", "kappa", "sigma", "lambda", "theta", "zeta")
"""Plain words."""

_MARKUP = ("<invoke", "<parameter", "</", "<div")


def text(rng: Random, size: int) -> str:
    """A text of about `size` bytes that ends in no markup."""
    out: list[str] = []
    length = 0
    while length < size:
        line = rng.choice(LINES)
        if rng.random() < 0.3:
            line = "    " * rng.randrange(4) + line
        line += rng.choice(("\n", "\n", "\n", "\n", "\r\n", "\n\n"))
        out.append(line)
        length += len(line.encode())
    while any(mark in out[-1] for mark in _MARKUP):
        out[-1] = rng.choice(LINES) + "\n"
    return "".join(out)


def word(rng: Random) -> str:
    """A short plain word."""
    return rng.choice(WORDS) + str(rng.randrange(1000))


def path(rng: Random) -> str:
    """A relative path."""
    return "/".join(word(rng) for _ in range(rng.randrange(1, 4))) + rng.choice((".py", ".ts", ".c", ".md", ".json"))


def pattern(rng: Random) -> str:
    """A regular expression whose backslashes all stand before letters that are no JSON escape."""
    parts = ("\\d+", "\\s*", "\\w", "\\(", "\\)", "[a-z]", "x", "=", "\\.", "\\[", "\\s")
    return "\\d" + "".join(rng.choice(parts) for _ in range(rng.randrange(2, 12)))
