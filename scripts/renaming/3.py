"""Rename by the table of helper 3, second part: python 3.py CHECKOUT   (right after rename.py 3.json CHECKOUT)

1. SYMBOLS: module-level names with ordinary spellings, renamed where they are defined and wherever they are imported,
   by the scopes of each file (a local variable of the same name stays).
2. SETTINGS: dotted names in any text, `key = value` lines below a [table], keys of dicts, keyword arguments.
3. Messages: wanted …; got … → expected …; got ….
4. The table of renamed settings in attlas.config and its test. docs/settings.md is made anew.
"""
import ast, os, re, subprocess, sys
from pathlib import Path
ROOT = Path(sys.argv[1]).resolve()
SRC = ROOT / "src"
PY = [p for b in ("src", "tests", "benchmarks", "scripts") for p in sorted((ROOT / b).rglob("*.py")) if ".peers" not in p.parts and ".egg" not in str(p)]
TEXTS = [*PY, *sorted(p for p in ROOT.glob("*.md") if p.name != "CHANGELOG.md"), *sorted(p for p in (ROOT / "docs").rglob("*.md") if p.name != "log.md"),
         *sorted((ROOT / "benchmarks").glob("*.md")), *sorted((ROOT / "src").rglob("*.toml")), ROOT / "Makefile", *sorted((ROOT / ".ci").rglob("*"))]
TEXTS = [p for p in TEXTS if p.is_file()]
rel = lambda p: str(p.relative_to(ROOT))
def edit(p, change):
    s = p.read_text(); n = change(s)
    if n != s: p.write_text(n)
    return n != s

# ---------------------------------------------------------------- 1. symbols
SYMBOLS = {}
def sym(module, **names): SYMBOLS.setdefault(f"attlas.{module}", {}).update(names)
exec((Path(__file__).parent / "symbols3.py").read_text())

def module_of(p):
    parts = list(p.relative_to(SRC).with_suffix("").parts)
    if parts[-1] == "__init__": parts.pop()
    return ".".join(parts)
MODULES = {module_of(p): p for p in PY if p.is_relative_to(SRC)}
TREES = {}
def tree(p):
    if p not in TREES: TREES[p] = ast.parse(p.read_text())
    return TREES[p]
RESOLVED = {}
def resolve(module, name):
    if (module, name) not in RESOLVED: RESOLVED[module, name] = resolve_(module, name)
    return RESOLVED[module, name]
IMPORTS = {}
def imports_of(module):
    if module not in IMPORTS: IMPORTS[module] = [n for n in ast.walk(tree(MODULES[module])) if isinstance(n, ast.ImportFrom) and n.module and n.level == 0]
    return IMPORTS[module]
def resolve_(module, name, seen=()):
    """The module that defines `name` when it is imported from `module`."""
    if name in SYMBOLS.get(module, {}) : return module
    if module not in MODULES or (module, name) in seen: return None
    for node in imports_of(module):
            for a in node.names:
                if (a.asname or a.name) == name and a.name == name:
                    found = resolve_(node.module, name, (*seen, (module, name)))
                    if found: return found
    return None

class Scopes(ast.NodeVisitor):
    """For each Name: is it the module's?"""
    def __init__(self, names): self.names, self.stack, self.hits = names, [], []
    def bound(self, node):
        out, glob = set(), set()
        def walk(n, top=False):
            for c in ast.iter_child_nodes(n):
                if isinstance(c, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                    out.add(c.name); continue
                if isinstance(c, ast.Lambda): continue
                if isinstance(c, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
                    for w in ast.walk(c):
                        if isinstance(w, ast.NamedExpr): out.add(w.target.id)
                    continue
                if isinstance(c, ast.Name) and isinstance(c.ctx, (ast.Store, ast.Del)): out.add(c.id)
                if isinstance(c, (ast.Import, ast.ImportFrom)): out.update(("import", (a.asname or a.name).split(".")[0]) for a in c.names)
                if isinstance(c, ast.ExceptHandler) and c.name: out.add(c.name)
                if isinstance(c, (ast.MatchAs, ast.MatchStar)) and c.name: out.add(c.name)
                if isinstance(c, ast.Global): glob.update(c.names)
                walk(c)
        walk(node); return out - glob
    def push(self, kind, bound, visit): self.stack.append((kind, bound)); visit(); self.stack.pop()
    def local(self, name):
        for i, (kind, bound) in enumerate(reversed(self.stack)):
            if kind == "class" and i: continue
            if name in bound: return True
        return False
    def args(self, a): return {x.arg for x in [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, [a.vararg, a.kwarg])]}
    def fn(self, node):
        for d in node.decorator_list: self.visit(d)
        for d in [*node.args.defaults, *filter(None, node.args.kw_defaults)]: self.visit(d)
        for x in ast.walk(node.args):
            if isinstance(x, ast.arg) and x.annotation: self.visit(x.annotation)
        if node.returns: self.visit(node.returns)
        if node.name in self.names and not self.local(node.name) and not self.stack: self.hits.append(("def", node, node.name))
        self.push("function", self.bound(node) | self.args(node.args), lambda: [self.visit(b) for b in node.body])
    visit_FunctionDef = visit_AsyncFunctionDef = fn
    def visit_ClassDef(self, node):
        for d in [*node.decorator_list, *node.bases, *[k.value for k in node.keywords]]: self.visit(d)
        if node.name in self.names and not self.stack: self.hits.append(("def", node, node.name))
        self.push("class", self.bound(node), lambda: [self.visit(b) for b in node.body])
    def visit_Lambda(self, node):
        for d in [*node.args.defaults, *filter(None, node.args.kw_defaults)]: self.visit(d)
        self.push("function", self.args(node.args), lambda: self.visit(node.body))
    def comp(self, node):
        targets = {w.id for g in node.generators for w in ast.walk(g.target) if isinstance(w, ast.Name)}
        self.push("function", targets, lambda: self.generic_visit(node))
    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = comp
    def visit_Name(self, node):
        if node.id in self.names and not self.local(node.id): self.hits.append(("name", node, node.id))

def rename_symbols(p):
    src = p.read_text(); t = tree(p); me = module_of(p) if p.is_relative_to(SRC) else None
    names, aliases = {}, {}
    if me in SYMBOLS: names.update({k: (v, me) for k, v in SYMBOLS[me].items()})
    imports = []
    for node in ast.walk(t):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            for a in node.names:
                home = resolve(node.module, a.name)
                if home:
                    new = SYMBOLS[home][a.name]; imports.append((a, a.name, new))
                    if a.asname is None: names[a.name] = (new, home)
                sub = f"{node.module}.{a.name}"
                if sub in MODULES: aliases[a.asname or a.name] = sub
        elif isinstance(node, ast.Import):
            for a in node.names:
                if a.name in MODULES: aliases[a.asname or a.name] = a.name
    lines = src.splitlines(keepends=True); starts = [0]
    for l in lines: starts.append(starts[-1] + len(l))
    def at(line, col): return starts[line - 1] + len(lines[line - 1].encode()[:col].decode())
    edits = set()
    for a, old, new in imports:
        i = at(a.lineno, a.col_offset); assert src[i:i + len(old)] == old, (p, src[i:i+30]); edits.add((i, old, new))
    v = Scopes(names)
    v.visit(t) if not isinstance(t, ast.Module) else [v.visit(b) for b in t.body]
    fstrings = []
    for kind, node, old in v.hits:
        new = names[old][0]
        if kind == "def":
            i = at(node.lineno, node.col_offset); i = src.index(old, i)
        else: i = at(node.lineno, node.col_offset)
        if src[i:i + len(old)] == old: edits.add((i, old, new))
        else: fstrings.append((node, old, new))
    for node in ast.walk(t):  # module.name
        if isinstance(node, ast.Attribute):
            dotted = ast.unparse(node.value)
            mod = aliases.get(dotted)
            home = mod and resolve(mod, node.attr)
            if home:
                i = at(node.end_lineno, node.end_col_offset) - len(node.attr)
                if src[i:i + len(node.attr)] == node.attr: edits.add((i, node.attr, SYMBOLS[home][node.attr]))
                else: fstrings.append((node, node.attr, SYMBOLS[home][node.attr]))
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Attribute, ast.Name)) and ast.unparse(node.func).endswith("setattr") and len(node.args) > 1:
            mod = aliases.get(ast.unparse(node.args[0])); s = node.args[1]
            if mod and isinstance(s, ast.Constant) and isinstance(s.value, str) and (home := resolve(mod, s.value)):
                i = at(s.lineno, s.col_offset) + 1; edits.add((i, s.value, SYMBOLS[home][s.value]))
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            for s in ast.walk(node.value):
                if isinstance(s, ast.Constant) and s.value in names:
                    i = at(s.lineno, s.col_offset) + 1; edits.add((i, s.value, names[s.value][0]))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("TypeVar", "cast"):
            for s in [*node.args, *(k.value for k in node.keywords)]:
                if isinstance(s, ast.Constant) and s.value in names:
                    i = at(s.lineno, s.col_offset) + 1; edits.add((i, s.value, names[s.value][0]))
    # forward references: "Name" as an annotation
    for node in ast.walk(t):
        for ann in [getattr(node, "annotation", None), getattr(node, "returns", None)]:
            for s in ast.walk(ann) if ann is not None else ():
                if isinstance(s, ast.Constant) and isinstance(s.value, str):
                    for w in re.findall(r"\w+", s.value):
                        if w in names and w[0].isupper():
                            i = at(s.lineno, s.col_offset); j = src.index(w, i); edits.add((j, w, names[w][0]))
    # f-strings: positions are those of the whole string in Python 3.11
    for node, old, new in fstrings:
        owner = None
        for j in ast.walk(t):
            if isinstance(j, ast.JoinedStr) and any(x is node for x in ast.walk(j)):
                if owner is None or (j.end_lineno - j.lineno) >= (owner.end_lineno - owner.lineno): owner = j
        a, b = at(owner.lineno, owner.col_offset), at(owner.end_lineno, owner.end_col_offset)
        for m in re.finditer(rf"(?<=[{{(, \[!]){old}(?=[(,)}}.\[! ])", src[a:b]):
            text = src[a:b][: m.start()]
            if text.rfind("{") > text.rfind("}"): edits.add((a + m.start(), old, new))
    # prose: `name` in docstrings and comments
    taken = sorted(edits)
    for old, (new, _) in names.items():
        for m in re.finditer(rf"(?<=`){old}(?=[`(\[.])", src): edits.add((m.start(), old, new))
    out, last = [], 0
    for i, old, new in sorted(edits):
        if i < last: continue
        assert src[i:i + len(old)] == old, (rel(p), i, old, src[i:i+20]); out += [src[last:i], new]; last = i + len(old)
    out.append(src[last:]); n = "".join(out)
    for mod, ns in SYMBOLS.items():  # "attlas.x.name" in strings
        for old, new in ns.items(): n = re.sub(rf"\b{re.escape(mod)}\.{old}\b", f"{mod}.{new}", n)
    return src, n
results = []
for p in PY:
    src, n = rename_symbols(p)
    if n != src: results.append((p, n))
for p, n in results: p.write_text(n)
TREES.clear()

exec((Path(__file__).parent / "settings3.py").read_text())
