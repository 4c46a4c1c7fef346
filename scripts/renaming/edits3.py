# ---------------------------------------------------------------- 4. edits by hand (run inside 3.py)
def sub(file, *pairs, every=False):
    p = ROOT / file
    s = p.read_text()
    for old, new in pairs:
        if old not in s:
            if new not in s:
                print("NOT FOUND", file, repr(old[:80]))
            continue
        s = s.replace(old, new) if every else s.replace(old, new, 1)
    p.write_text(s)


def rsub(file, *pairs):
    p = ROOT / file
    s = p.read_text()
    for old, new in pairs:
        n = re.sub(old, new, s)
        if n == s:
            print("NOT FOUND", file, repr(old[:80]))
        s = n
    p.write_text(s)


A = "src/attlas/"
sub(
    A + "decoding/config.py",
    ('("beam", "exhaustive")', '("num_beams", "exhaustive")'),
    ("`Penalties`. beam: how many", "`Penalties`. num_beams: how many"),
)
sub(
    A + "jobs/inputs.py",
    ('("--num-beams", "beam", num_beams)', '("--num-beams", "num_beams", num_beams)'),
    ('"beam": num_beams}', '"num_beams": num_beams}'),
)
sub(A + "cli/evaluate_report.py", ('{"method", "beam"}', '{"method", "num_beams"}'))
sub(
    A + "training/recipe.py",
    ('"vocabulary": {"joint"}', '"vocabulary": {"shared"}'),
    ('"training": {"feeding"}', '"training": {"scheduled_sampling"}'),
)
sub(
    A + "training/config.py",
    (
        "`epochs`, `updates` and `minutes`",
        "`max_epochs`, `max_steps` and `max_minutes`",
    ),
    (" rate: of the optimiser", " learning_rate: of the optimizer"),
    (" rate: of the optimizer", " learning_rate: of the optimizer"),
    ("schedule. clip: the greatest", "schedule. max_grad_norm: the greatest"),
    (" smoothing: ε of the labels", " label_smoothing: ε of the labels"),
    ("does not name. consistency: α", "does not name. rdrop_alpha: α"),
    ("more. accumulate: so many", "more. gradient_accumulation_steps: so many"),
    ("give. keep: how many", "give. keep_last: how many"),
    ("count for `keep` and", "count for `keep_last` and"),
    (
        "training: epochs, updates or minutes",
        "training: max_epochs, max_steps or max_minutes",
    ),
    ("a consistency of {", "an rdrop_alpha of {"),
)
sub(
    A + "training/trainer.py",
    ('return "epochs"', 'return "max_epochs"'),
    ('return "updates"', 'return "max_steps"'),
    ('return "minutes"', 'return "max_minutes"'),
    ("`epochs` and `updates` allow", "`max_epochs` and `max_steps` allow"),
)
sub(
    A + "training/events.py",
    (
        '"epochs", "updates", "minutes" or "patience"',
        '"max_epochs", "max_steps", "max_minutes" or "patience"',
    ),
    ("`epochs` and `updates` allow", "`max_epochs` and `max_steps` allow"),
    ("    rate, norm of the gradient", "    learning_rate, grad_norm (of the gradient"),
    (
        "before clipping and teacher forcing (None",
        "before clipping) and teacher_forcing (None",
    ),
)
sub(
    A + "training/progress.py",
    ('event.reason != "minutes"', 'event.reason != "max_minutes"'),
    ('    "epochs": "all', '    "max_epochs": "all'),
    ('    "updates": "all', '    "max_steps": "all'),
)
sub(
    A + "training/schedules.py",
    ('return "updates", self', 'return "total_steps", self'),
)
sub(
    A + "training/learner.py",
    ("    norm: of the gradient", "    grad_norm: of the gradient"),
)

# runs/run.py: the loaded checkpoint has a name of its own
rsub(
    A + "runs/run.py",
    (
        r"\bcheckpoint = self\._checked\(checkpoint\)",
        "loaded = self._checked(checkpoint)",
    ),
    (r"checkpoint\.model, self\.path", "loaded.model, self.path"),
    (
        r"checkpoint = self\.store\.read\(checkpoint\)",
        "loaded = self.store.read(checkpoint)",
    ),
    (
        r"checkpoint\.seal\)\n        return checkpoint",
        "loaded.seal)\n        return loaded",
    ),
    (r"\n        which: \"best\"", '\n        checkpoint: "best"'),
)
sub(A + "jobs/inspection.py", ('" (joint: one for', '" (shared: one for'))
exec((Path(__file__).parent / "params3.py").read_text())
exec((Path(__file__).parent / "renamed3.py").read_text())
for p in PY:
    edit(
        p,
        lambda s: re.sub(r"\battlas\.decoding\.num_beams\b", "attlas.decoding.beam", s),
    )
sub(
    A + "data/bucketing.py",
    ("than `tokens` slots", "than `max_tokens` slots"),
    ("than `tokens` keys", "than `max_tokens` keys"),
    ("pass: `tokens` counts", "pass: `max_tokens` counts"),
    ("fits into tokens = {", "fits into max_tokens = {"),
)
for b in ("benchmarks/decoding_speed.py", "benchmarks/search_speed.py"):
    sub(b, ("f'beam {beam}'", "f'beam {num_beams}'"))
sub(
    "tests/cli/test_figure.py",
    ("num_beams = Translator(run)", "beam = Translator(run)"),
    ("Translator(run, num_beams.config", "Translator(run, beam.config"),
    ("num_beams.stream(", "beam.stream("),
)
sub(
    "tests/config/test_config.py",
    (
        'table = {"training": {"rate": 1.0}}',
        'table = {"training": {"learning_rate": 1.0}}',
    ),
    ('{"training": {"rate": 1e-3,', '{"training": {"learning_rate": 1e-3,'),
    (
        'assert table == {"training": {"rate": 1.0}}',
        'assert table == {"training": {"learning_rate": 1.0}}',
    ),
)
for p in PY:  # what is kept from the formatter and grew too long is given to it
    s = p.read_text()
    if "# fmt: skip" not in s:
        continue
    lines = s.splitlines(keepends=True)
    for node in ast.walk(ast.parse(s)):
        if (
            isinstance(node, ast.stmt)
            and not isinstance(node, (ast.FunctionDef, ast.ClassDef))
            and "# fmt: skip" in lines[node.end_lineno - 1]
        ):
            if any(
                len(l.rstrip("\n")) > 100
                for l in lines[node.lineno - 1 : node.end_lineno]
            ):
                lines[node.end_lineno - 1] = re.sub(
                    r"  # fmt: skip", "", lines[node.end_lineno - 1]
                )
    n = "".join(lines)
    if n != s:
        p.write_text(n)
# ---------------------------------------------------------------- prose of training
WORDS = [
    (r"\bA crew\b", "A thread group"),
    (r"\ba crew\b", "a thread group"),
    (r"\bThe crew\b", "The thread group"),
    (r"\bthe crew\b", "the thread group"),
    (r"\bno crew\b", "no thread group"),
    (r"\bcrew:", "thread_group:"),
    (r"\bfleet:", "process_group:"),
    (r"\b(a|the|A|The) fleet\b", r"\1 process group"),
    (r"\bwhose fleet\b", "whose process group"),
    (r"\bsitting\b", "session"),
    (r"\bsittings\b", "sessions"),
    (r"\boptimiser\b", "optimizer"),
    (r"\bon the shelf of a run\b", "into the checkpoint store of a run"),
    (r"\bon the shelf\b", "into the store"),
    (r"\ban earlier sitting\b", "an earlier session"),
    (r"\bjoint vocabulary\b", "shared vocabulary"),
]
import io
import tokenize

for p in PY:
    r = rel(p)
    if not r.startswith(
        (
            A + "training/",
            A + "_parallel.py",
            A + "_signals.py",
            A + "runs/",
            A + "data/",
            A + "models/",
            "tests/training/",
        )
    ):
        continue
    s = p.read_text()
    if not re.search(r"\b(crew|fleet|sitting|sittings|optimiser|shelf|joint)\b", s):
        continue
    lines = s.splitlines(keepends=True)
    starts = [0]
    for l in lines:
        starts.append(starts[-1] + len(l))
    out, last = [], 0
    for t in tokenize.generate_tokens(io.StringIO(s).readline):
        if t.type == tokenize.COMMENT or (
            t.type == tokenize.STRING
            and (t.string.startswith('"""') or "optimiser's" in t.string)
        ):
            n = t.string
            for old, new in WORDS:
                n = re.sub(old, new, n)
            if n != t.string:
                i = starts[t.start[0] - 1] + t.start[1]
                j = starts[t.end[0] - 1] + t.end[1]
                out += [s[last:i], n]
                last = j
    out.append(s[last:])
    n = "".join(out)
    if n != s:
        p.write_text(n)
sub(A + "training/learner.py", ('"optimiser/", "average/"', '"optimizer/", "average/"'))
sub(
    A + "training/logging.py",
    (
        "`with Teller(…) as teller: teller.tell(event)`",
        "`with EventLogger(…) as logger: logger.log(event)`",
    ),
    (
        "`with EventLogger(…) as teller: teller.tell(event)`",
        "`with EventLogger(…) as logger: logger.log(event)`",
    ),
)
sub(
    A + "training/config.py",
    ('"another feeding and', '"another scheduled_sampling and'),
    ('f"another feeding and', 'f"another scheduled_sampling and'),
)


def docs(file, *pairs):
    p = ROOT / file
    s = p.read_text()
    for o, n in pairs:
        s = re.sub(rf"(?<=`){o}(?=[`(])", n, s)
    p.write_text(s)


docs(
    "docs/design.md",
    ("Sitting", "TrainingSession"),
    ("Paths", "SingleHypothesisSearch"),
    ("Beams", "BeamSearch"),
    (r"Translator\.many", "Translator.stream"),
    ("many", "stream"),
    (r"crew\.py", "_parallel.py"),
)
for q in [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "benchmarks/README.md",
]:
    if q.name == "log.md":
        continue
    edit(
        q,
        lambda s: re.sub(
            r"\boptimiser\b",
            "optimizer",
            re.sub(
                r"\bkeep_freed_memory\b",
                "disable_malloc_trim",
                re.sub(r"\bgive_back_freed_memory\b", "malloc_trim", s),
            ),
        ),
    )
sub(
    "tests/training/test_recipe.py",
    ("classifier(tokens=", "classifier(max_tokens="),
    (r"\.raet", r"\.learning_raet"),
    ('"raet"', '"learning_raet"'),
    ("raet=", "learning_raet="),
    ("keep of at least 9", "keep_last of at least 9"),
    (
        "an end of the training: epochs, updates or minutes",
        "an end of the training: max_epochs, max_steps or max_minutes",
    ),
    (r".* tokens = {tokens} \(the", r".* max_tokens = {tokens} \(the"),
    every=True,
)
for q in ("trainer", "resume", "logging", "progress"):
    q = ROOT / f"tests/training/test_{q}.py"

    def reasons(s):
        s = s.replace('length == ("updates"', 'length == ("total_steps"')
        for o, n in (
            ("updates", "max_steps"),
            ("epochs", "max_epochs"),
            ("minutes", "max_minutes"),
        ):
            s = re.sub(rf'(?<!assert )"{o}"(?!\s*:)', f'"{n}"', s)
        return s

    edit(q, reasons)
sub(
    "tests/training/test_learner.py",
    (".norm == pytest", ".grad_norm == pytest"),
    ("1).norm)", "1).grad_norm)"),
    ('"say"', '"send"'),
    every=True,
)
sub(
    "tests/training/test_classifying.py",
    ("no joint with model.kind", "no shared with model.kind"),
    ("no feeding with", "no scheduled_sampling with"),
)
sub(
    A + "training/progress.py",
    (
        """{count_noun(event.batches, 'batch', 'batches')}\"\n""",
        """"\n            f"{count_noun(event.batches, 'batch', 'batches')}\"\n""",
    ),
)
for p in PY:
    if rel(p).startswith("tests/"):
        edit(
            p,
            lambda s: re.sub(
                r'(setattr\((?:Translator|TextClassifier|FastTranslator), )"many"',
                r'\1"stream"',
                s,
            ),
        )
for q in sorted((ROOT / "docs/results").glob("*.json")):
    edit(
        q,
        lambda s: re.sub(
            r'"(beam|max_length_factor|max_length_constant|longest_source)":',
            lambda m: f'"{SETTINGS["decoding"][m.group(1)]}":',
            s,
        ),
    )
sub(
    "scripts/settings.py",
    ("`256`; of a classifier `tokens` − 2", "`256`; of a classifier `max_tokens` − 2"),
)
sub(
    A + "cli/_process.py",
    ("lower --tokens for statistics", "lower --max-tokens for statistics"),
)
sub(
    A + "cli/stats.py",
    ("    tokens: Annotated[", "    max_tokens: Annotated["),
    ("tokens=tokens,", "max_tokens=max_tokens,"),
)
rsub(
    A + "jobs/statistics.py",
    (
        r"(?m)^    tokens: int\n    num_beams: int",
        "    max_tokens: int\n    num_beams: int",
    ),
    (r"\basked\.tokens\b", "asked.max_tokens"),
)
for p in TEXTS:
    edit(
        p,
        lambda s: (
            re.sub(r"(?<![\w-])--tokens(?=[\"', =`])", "--max-tokens", s)
            if rel(p).startswith(
                (
                    "tests/cli",
                    "docs/",
                    "README",
                    "src/attlas/cli",
                    "src/attlas/jobs",
                    "src/attlas/corpus",
                )
            )
            else s
        ),
    )
python = sys.executable
done = subprocess.run(
    [python, "scripts/settings.py"],
    cwd=ROOT,
    env={**os.environ, "PYTHONPATH": str(SRC)},
    capture_output=True,
    text=True,
)
if done.returncode:
    print("docs/settings.md was not made anew:", done.stderr[-600:])
for p in PY:
    if rel(p).startswith(("tests/", A + "inference/", "benchmarks/")):
        edit(
            p,
            lambda s: re.sub(
                r"\b(translator|classifier|faster|fast|Translator|TextClassifier)\.many\b",
                r"\1.stream",
                s,
            ),
        )
sub(
    "tests/cli/test_train.py",
    ('("beam=3", "beem=3")', '("num_beams=3", "num_beems=3")'),
    ("decoding.beem=3", "decoding.num_beems=3"),
    ("training.rat=", "training.learning_rat="),
    ("did you mean `rate`?", "did you mean `learning_rate`?"),
    (
        '.replace("updates = 3", "updates = 5")',
        '.replace("max_steps = 3", "max_steps = 5")',
    ),
)
sub(
    "tests/cli/test_translate.py",
    ("decoding.beem=3", "decoding.num_beems=3"),
    (
        '"updates = 3", "updates = 60\\nrate = 2e-2"',
        '"max_steps = 3", "max_steps = 60\\nlearning_rate = 2e-2"',
    ),
)
sub("tests/cli/test_engine.py", ('"beam = 5, by', '"num_beams = 5, by'))
sub("tests/cli/test_evaluate.py", (", beam = ", ", num_beams = "), every=True)
sub(
    "tests/scripts/test_settings.py",
    (r"[training]\nepochs = 1", r"[training]\nmax_epochs = 1"),
)
sub("scripts/results.py", ("decoding['beam']", "decoding['num_beams']"))
sub("tests/scripts/test_settings.py", ('("clip", f"', '("max_grad_norm", f"'))
