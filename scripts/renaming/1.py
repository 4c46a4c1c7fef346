"""Renames of family 1 (everywhere, layers, models): python 1.py CHECKOUT

Run after `rename.py 1.json CHECKOUT`. Rules are token-based, as in rename.py, with more context:
  where  any | attr | bare | kw (keyword argument of a call) | method (after a dot and before a paren, or def)
  base   regex: all that stands before the last dot of an attribute (`self.memory`, `config`; `)`)
  callee regex: the name before the innermost open paren
  defs   regex: the enclosing definition, `Class.method`
  i, x   path prefixes or globs: in, not in
The first rule that fits a token wins. Then the shapes of jaxtyping, texts, settings, and plain edits.
"""
import ast, fnmatch, io, re, sys, textwrap, tokenize
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
ROOT = Path(sys.argv[1])
from rules1 import RULES, EDITS, FILES_RENAMED, shape_word, text_of, toml_of, MD  # noqa: E402

FILES = [p for b in ("src", "tests", "benchmarks", "scripts") for p in (ROOT / b).rglob("*.py")
         if ".peers" not in p.parts and ".egg" not in str(p)]
SKIP = (tokenize.NL, tokenize.COMMENT)


def matches(rel, pats):
    return any(rel.startswith(p) or fnmatch.fnmatch(rel, p) for p in pats)


def spans(tree):
    out = []

    def walk(node, name):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                own = f"{name}.{child.name}" if name else child.name
                out.append((child.lineno, child.end_lineno, own))
                walk(child, own)
            else:
                walk(child, name)

    walk(tree, "")
    return out


def python(rel, src):
    toks = list(tokenize.generate_tokens(io.StringIO(src).readline))
    rules = {}
    for r in RULES:
        if matches(rel, r.get("i", [""])) and not matches(rel, r.get("x", [])):
            rules.setdefault(r["old"], []).append(r)
    places = spans(ast.parse(src))

    def defs_at(line):
        name = ""
        for a, b, own in places:
            if a <= line <= b and len(own) >= len(name):
                name = own
        return name

    docs = docstring_lines(ast.parse(src))
    return renamed(src, toks, rules, defs_at, rel, docs, [])


def fstring_parts(s):
    """(start, end) of the expressions of an f-string literal."""
    out, i, depth = [], 0, 0
    while i < len(s):
        c = s[i]
        if c == "{":
            if s[i + 1 : i + 2] == "{":
                i += 2
                continue
            j, depth, quote = i + 1, 0, None
            while j < len(s):
                d = s[j]
                if quote:
                    if d == quote: quote = None
                elif d in "\"'": quote = d
                elif d in "([{": depth += 1
                elif d in ")]" or d == "}" and depth: depth -= 1
                elif d == "}" or depth == 0 and (d == ":" or d == "!" and s[j + 1] != "="): break
                j += 1
            out.append((i + 1, j))
            i = j
            if s[i : i + 1] in (":", "!"):  # a format may hold expressions, which come next
                pass
        i += 1
    return out


def in_fstring(s, rules, name, rel):
    out, last = [], 0
    for start, end in fstring_parts(s):
        part = s[start:end]
        pad = len(part) - len(part.lstrip())
        core = part.strip().rstrip("=")
        try:
            toks = list(tokenize.generate_tokens(io.StringIO(core).readline))
        except (tokenize.TokenError, IndentationError):
            continue
        new = renamed(core, toks, rules, lambda line: name, rel, set(), ["{f"])
        if new != core:
            out.append(s[last : start + pad])
            out.append(new)
            last = start + pad + len(core)
    out.append(s[last:])
    return "".join(out)


def renamed(src, toks, rules, defs_at, rel, docs, stack):
    lines = src.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    pos = lambda rc: starts[rc[0] - 1] + rc[1]
    sig = [t for t in toks if t.type not in SKIP]
    index = {id(t): n for n, t in enumerate(sig)}
    out, last = [], 0
    fstring = getattr(tokenize, "FSTRING_MIDDLE", -1)
    for t in toks:
        new = None
        n = index.get(id(t))
        if t.type == tokenize.OP and t.string in "([{":
            b = sig[n - 1] if n else None
            name = ""
            if t.string == "(" and b is not None and b.type == tokenize.NAME:
                name = b.string
                if n > 1 and sig[n - 2].string in ("def", "class"):
                    name = f"{sig[n - 2].string} {name}"
            elif t.string in "[{":
                name = t.string
            stack.append(name)
        elif t.type == tokenize.OP and t.string in ")]}":
            if stack:
                stack.pop()
        elif t.type == tokenize.NAME and t.string in rules:
            b = sig[n - 1] if n else None
            a = sig[n + 1] if n + 1 < len(sig) else None
            dot = b is not None and b.string == "."
            base = ""
            if dot:
                m = n - 2
                chain = []
                while m >= 0:
                    if sig[m].type == tokenize.NAME:
                        chain.insert(0, sig[m].string)
                        if m and sig[m - 1].string == ".":
                            m -= 2
                            continue
                    else:
                        chain.insert(0, sig[m].string)
                    break
                base = ".".join(chain)
            iskw = (not dot and a is not None and a.string == "=" and stack and stack[-1] not in ("[", "{", "")
                    and not stack[-1].startswith("def ") and b.string in "(,")
            isdef = b is not None and b.string == "def"
            where_defs = None
            for r in rules[t.string]:
                w = r.get("where", "any")
                if w == "attr" and not dot: continue
                if w == "bare" and (dot or iskw and r.get("nokw")): continue
                if w == "kw" and not iskw: continue
                if w == "method" and not (isdef or dot and a is not None and a.string == "("): continue
                if w == "callattr" and not (dot and a is not None and a.string == "("): continue
                if "base" in r and not (dot and re.fullmatch(r["base"], base)): continue
                if "notbase" in r and dot and re.fullmatch(r["notbase"], base): continue
                if "callee" in r and not (stack and re.fullmatch(r["callee"], stack[-1])): continue
                if "defs" in r or "notdefs" in r:
                    if where_defs is None: where_defs = defs_at(t.start[0])
                    if "defs" in r and not re.search(r["defs"], where_defs): continue
                    if "notdefs" in r and re.search(r["notdefs"], where_defs): continue
                if t.string == "slots" and a.string == "=" and sig[n + 2].string == "True": continue
                new = r["new"]
                break
        elif t.type in (tokenize.STRING, tokenize.COMMENT, fstring):
            s = t.string
            if t.type == tokenize.STRING and re.match(r"[rR]?[fF]", s):
                s = in_fstring(s, rules, defs_at(t.start[0]), rel)
            elif t.type == tokenize.STRING and s.startswith('"""') and re.search(r"^(from|import) ", s, re.M) and t.start[0] not in docs:
                try:
                    s = '"""' + python(rel, s[3:-3]) + '"""'
                except (SyntaxError, tokenize.TokenError):
                    pass
            b = sig[n - 1].string if n else ""
            a = sig[n + 1].string if n is not None and n + 1 < len(sig) else ""
            if t.type == tokenize.STRING and b == "," and a == "]" and re.fullmatch(r'"[\w#*+ ._-]*"', s):
                names = s[1:-1]
                words = names.split(" ")
                where = defs_at(t.start[0])
                s = '"' + " ".join(shape_word(w, words, rel, where) for w in words) + '"'
            else:
                kind = "comment" if t.type == tokenize.COMMENT else "doc" if t.start[0] in docs else "str"
                after_key = a == ":" and stack and stack[-1] == "{"
                s = text_of(s, rel, kind, dict(key=after_key, callee=stack[-1] if stack else "", index=b == "[" and a == "]", before=b, defs=defs_at(t.start[0])))
            if s != t.string:
                new = s
        if new is not None:
            out.append(src[last:pos(t.start)])
            out.append(new)
            last = pos(t.end)
    out.append(src[last:])
    return "".join(out)


def docstring_lines(tree):
    found = set()
    for node in ast.walk(tree):
        for child in getattr(node, "body", []) if not isinstance(node, ast.Lambda | ast.IfExp) else []:
            if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant) and isinstance(child.value.value, str):
                found.add(child.lineno)
    return found


for p in FILES:
    rel = p.relative_to(ROOT).as_posix()
    s = p.read_text()
    try:
        n = python(rel, s)
    except (SyntaxError, tokenize.TokenError) as error:
        print("cannot read", rel, error)
        continue
    if n != s:
        p.write_text(n)
for p in [*ROOT.glob("src/attlas/recipes/*.toml")]:
    s = p.read_text()
    n = toml_of(s)
    if n != s:
        p.write_text(n)
for rel, function in MD.items():
    p = ROOT / rel
    s = p.read_text()
    n = function(s)
    if n != s:
        p.write_text(n)
def refilled(src):
    """The same with docstring paragraphs and comments filled again that have become too long."""
    lines = src.split("\n")
    toks = list(tokenize.generate_tokens(io.StringIO(src).readline))
    docs = docstring_lines(ast.parse(src))
    inside, comments = set(), set()
    for t in toks:
        if t.type == tokenize.STRING and t.start[0] in docs:
            inside.update(range(t.start[0], t.end[0] + 1))
        if t.type == tokenize.COMMENT and not lines[t.start[0] - 1][: t.start[1]].strip():
            comments.add(t.start[0])
    n = len(lines)
    while n > 0:
        line = lines[n - 1]
        if len(line) <= 100 or n not in inside | comments:
            n -= 1
            continue
        group = inside if n in inside else comments
        mark = "" if n in inside else "# "
        indent = line[: len(line) - len(line.lstrip())]
        body = line.strip()
        bullet = "  " if body.startswith("- ") else ""
        a = b = n
        if not bullet:
            while a - 1 in group and lines[a - 2].strip() and lines[a - 2].startswith(indent + mark) and not re.match(r"- ", lines[a - 2].strip()) and len(lines[a - 2]) - len(lines[a - 2].lstrip()) == len(indent):
                a -= 1
        while b + 1 in group and lines[b].strip() and lines[b].strip() not in ('"""', "'''") and not lines[b].strip().startswith(("- ", "Errors:", "(")) and lines[b].startswith(indent + mark + bullet):
            b += 1
        text = lines[a - 1 : b]
        first_prefix = ""
        if mark:
            text = [x.strip().removeprefix("#").strip() for x in text]
        else:
            text = [x.strip() for x in text]
        start = n - a  # what stands before the long line stays as it is
        head, tail = lines[a - 1 : n - 1], " ".join(text[start:])
        closing = False
        if not mark and tail.endswith('"""') and tail != '"""' and not tail.startswith('"""'):
            pass
        filled = textwrap.wrap(tail, 100, initial_indent=indent + mark, subsequent_indent=indent + mark + bullet,
                               break_long_words=False, break_on_hyphens=False)
        if any(len(x) > 100 for x in filled) or "    " in tail:
            n -= 1
            continue
        lines[n - 1 : b] = filled
        # a docstring of one line has its quotes at the end of the text
        if not mark and tail.startswith(('"""', 'r"""')) and tail.endswith('"""') and len(filled) > 1:
            last = lines[n - 2 + len(filled)]
            lines[n - 2 + len(filled)] = last[:-3].rstrip()
            lines.insert(n - 1 + len(filled), indent + '"""')
        return refilled("\n".join(lines))
    return "\n".join(lines)


for p in FILES:
    rel = p.relative_to(ROOT).as_posix()
    if rel.startswith("src/"):
        s = p.read_text()
        n = refilled(s)
        if n != s:
            p.write_text(n)
for e in EDITS:
    p = ROOT / e[0]
    s = p.read_text()
    if e[1] not in s:
        print("NOT FOUND", e[0], repr(e[1][:90]))
    p.write_text(s.replace(e[1], e[2]))


def shorter(src):
    """The same with long lines of one string, or of items, cut in two."""
    lines = src.split("\n")
    toks = list(tokenize.generate_tokens(io.StringIO(src).readline))
    by = {}
    for t in toks:
        if t.start[0] == t.end[0] and t.type not in (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
            by.setdefault(t.start[0], []).append(t)
    for n, line in enumerate(lines, 1):
        if len(line) <= 100 or n not in by:
            continue
        ts = by[n]
        indent = line[: len(line) - len(line.lstrip())]
        if ts[0].type == tokenize.STRING and (len(ts) == 1 or len(ts) == 2 and ts[1].string in ",)"):
            s = ts[0].string
            m = re.match(r"([fFrR]*)([\"'])", s)
            if s.startswith(m.group(0) + m.group(2) * 2):
                continue
            cut = 0
            for j, c in enumerate(s):
                if c == " " and j + len(indent) < 98 and s.count("{", 0, j) == s.count("}", 0, j):
                    cut = j + 1
            if cut > 5:
                lines[n - 1] = indent + s[:cut] + m.group(2) + "\n" + indent + m.group(1) + m.group(2) + s[cut:] + "".join(t.string for t in ts[1:])
        elif line.rstrip().endswith(","):
            depth, cut = 0, 0
            for t in ts:
                if t.string in "([{" and t.type == tokenize.OP: depth += 1
                elif t.string in ")]}" and t.type == tokenize.OP: depth -= 1
                elif t.string == "," and depth == 0 and t.end[1] <= 100 and t.end[1] < len(line.rstrip()): cut = t.end[1]
            if cut:
                lines[n - 1] = line[:cut] + "\n" + indent + line[cut:].strip()
    return "\n".join(lines)


import os, subprocess  # noqa: E401, E402

env = {**os.environ, "PATH": os.environ["PATH"], "PYTHONPATH": str((ROOT / "src").resolve())}
for command in (["ruff", "check", "-q", "--fix", "--select", "I", "."], ["ruff", "format", "-q", "."]):
    subprocess.run(command, cwd=ROOT, env=env, check=False)
for p in FILES:
    s = p.read_text()
    n = refilled(s) if p.is_relative_to(ROOT / "src") else s
    n = shorter(n)
    if n != s:
        p.write_text(n)
subprocess.run(["python", "scripts/settings.py"], cwd=ROOT, env=env, check=False)
