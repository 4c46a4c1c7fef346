# ---------------------------------------------------------------- names of parameters in parametrize
import json

MAP = {}
for x in json.load(open(Path(__file__).parent / "3.json")):
    if "old" in x:
        MAP.setdefault(x["old"], []).append(x["new"])
for names in SETTINGS.values():
    for o, n in names.items():
        MAP.setdefault(o, []).append(n)
for p in PY:
    if not rel(p).startswith("tests/"):
        continue
    s = p.read_text()
    if "parametrize" not in s:
        continue
    lines = s.splitlines(keepends=True)
    starts = [0]
    for l in lines:
        starts.append(starts[-1] + len(l))
    edits = []
    for node in ast.walk(ast.parse(s)):
        if not isinstance(node, ast.FunctionDef):
            continue
        order = [
            a.arg
            for a in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        ]
        given = [
            c.value
            for d in node.decorator_list
            if isinstance(d, ast.Call)
            and ast.unparse(d.func).endswith("parametrize")
            and d.args
            for c in ast.walk(d.args[0])
            if isinstance(c, ast.Constant)
        ]
        have = {
            a.arg
            for a in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        }
        for d in node.decorator_list:
            if (
                isinstance(d, ast.Call)
                and ast.unparse(d.func).endswith("parametrize")
                and d.args
            ):
                consts = [c for c in ast.walk(d.args[0]) if isinstance(c, ast.Constant)]
                for k, c in enumerate(consts):
                    if (
                        isinstance(c, ast.Constant)
                        and isinstance(c.value, str)
                        and c.value not in have
                    ):
                        for new in MAP.get(c.value, ()):
                            if new in have:
                                i = starts[c.lineno - 1] + len(
                                    lines[c.lineno - 1]
                                    .encode()[: c.col_offset]
                                    .decode()
                                )
                                edits.append((i + 1, c.value, new))
                                break
                        else:
                            if k < len(order) and order[k] not in given:
                                i = starts[c.lineno - 1] + len(
                                    lines[c.lineno - 1]
                                    .encode()[: c.col_offset]
                                    .decode()
                                )
                                edits.append((i + 1, c.value, order[k]))
                            else:
                                print("PARAMETER", rel(p), node.name, c.value)
    for i, old, new in sorted(set(edits), reverse=True):
        assert s[i : i + len(old)] == old
        s = s[:i] + new + s[i + len(old) :]
    if edits:
        p.write_text(s)
