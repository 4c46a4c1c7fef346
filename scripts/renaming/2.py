"""What table 2 cannot say: python 2.py CHECKOUT, right after the table. Prose of docstrings, comments and messages; pages; formats."""
import io, re, sys, tokenize, subprocess
from pathlib import Path
ROOT=Path(sys.argv[1]); S="src/attlas/"
def files(*names):
    for n in names:
        p=ROOT/n
        yield from (sorted(p.rglob('*.py')) if p.is_dir() else [p] if p.exists() else print('2.py: no file',n) or [])
def prose(rules,*names):
    """Regular expressions over comments and strings, f-strings too."""
    rules=[(re.compile(a,re.M),b) for a,b in rules]
    for p in files(*names):
        src=p.read_text(); starts=[0]
        for l in src.splitlines(keepends=True): starts.append(starts[-1]+len(l))
        out=[];last=0
        for t in tokenize.generate_tokens(io.StringIO(src).readline):
            if t.type not in (tokenize.STRING,tokenize.COMMENT): continue
            s=t.string
            for a,b in rules: s=a.sub(b,s)
            if s!=t.string:
                x,y=starts[t.start[0]-1]+t.start[1],starts[t.end[0]-1]+t.end[1]
                out+=[src[last:x],s]; last=y
        if last: p.write_text(''.join(out)+src[last:])
def text(name,*rules):
    p=ROOT/name
    if not p.exists(): print('2.py: no file',name); return
    s=p.read_text()
    for a,b in rules:
        n=re.sub(a,b,s,flags=re.M)
        if n==s: print('2.py: nothing to change',name,a)
        s=n
    p.write_text(s)
REC,AN,CS,FIG,EXP=[S+x for x in ("recording","analysis","corpus_statistics","figures","explorer")]
OT=["tests/"+x for x in ("recording","analysis","corpus_statistics","figures","explorer","internals/test_threads.py","cli/test_figure.py","models/test_transformer.py","referees/test_huggingface_attention.py","decoding/test_unknown.py","support/table_model.py")]
TF=REC+"/torch_functions/"
OWN=[REC,AN,CS+"/readers.py",CS+"/table.py",FIG+"/heatmap.py",FIG+"/trace.py",EXP+"/maps.py",S+"inference/alignment.py",S+"jobs/inspection.py"]

# parameters and fields that docstrings describe as `name: what it is`
def params(names,**map): prose([(rf"(?<![\w`.]){a}(?=(, \w+)*:(?!\w| ?:))",b) for a,b in map.items()],*names)
params([REC,AN,CS],across="cross_attention")
params([REC+"/hooks.py",REC+"/recorder.py"],taken="first_query_position",unplaced="position_unknown",settled="is_final",ran="has_run",heard="called_layers",aside="inner_part")
params([REC+"/observe.py",REC+"/recorder.py"],keep="last_calls")
params([AN+"/description.py"],visible="num_visible",effective="effective_keys",evenness="normalized_entropy",peak="max_weight")
params([CS],relation="kind"); params([TF],waiting="callbacks",news="pending")
params([AN+"/roles"],aims="targets"); params([AN+"/faithfulness"],focus="target")
prose([(r"(?<=[. ] )readings(?=[,:] )","attention_maps"),(r"^(\s+)readings(?=[,:] )",r"\1attention_maps"),(r"(?<=\. )reading(?=: )","attention_map")],AN,CS)
prose([(r"(?<!\w)reading(?=: )","replacement"),(r"reading 'nothing'","replacement 'nothing'")],AN+"/head_importance.py","tests/analysis/test_ablation.py")

# readings are attention maps
prose([(r"\breading(?=\.\w+\()","attention_map"),(r"(?<=replace\()reading\b","attention_map"),(r"reading\.at\\\(","attention_map.at\\("),(r"\b([Aa]) reading\b",r"\1n attention map"),(r"\bReadings\b","Attention maps"),(r"\breadings\b","attention maps"),(r"(?<![-\w])reading(?! them\b|s? from\b)","attention map"),(r"\bReading of\b","Map of")],
      *[p for p in OWN if p!=AN],*[str(p.relative_to(ROOT)) for p in files(AN) if p.name!="head_importance.py"],*OT)
prose([(r"a trace with readings","a trace with attention maps")],EXP+"/backends.py")
prose([(r"become one reading","become one attention map"),(r"who listens: one reading","who listens: one attention map")],S+"models/rnn/decoder.py")
prose([(r"blocks of a reading","blocks of an attention map")],S+"_parallel.py")

# taps are attention hooks
prose([(r"self\.(tap|hook)\.intervened","self.hook.is_patched"),(r"self\.(tap|hook)\.rewrite","self.hook.patch"),(r"self\.(tap|hook)\.heard","self.hook.is_recording"),(r"self\.(tap|hook)\.note","self.hook.record"),
       (r"some attention_hooks:","some attention hooks:"),(r"each tap's","each hook's"),(r"no tap\b","no hook"),(r"written\n(\s+)down in the journal",r"handed\n\1to the recorder"),(r"down in the journal","to the recorder"),(r"this tap\b","this hook"),(r"Every tap\b","Every attention hook"),(r"without a tap\b","without a hook"),
       (r"\ba Tap\b","an AttentionHook"),(r"recording\.Tap\b","recording.AttentionHook")],REC,"tests/recording")
prose([(r"\ba tap\b","a hook"),(r"\bits tap\b","its hook"),(r"\bthe tap\b","the hook"),(r"\btaps\b","hooks")],S+"layers",S+"models",CS,S+"inference",S+"jobs")
# masks, targets, layouts, maps of texts
prose([(r"\bThe sights\b","The specs"),(r"\b[Tt]he sight\b",lambda m:m[0][:4]+"spec"),(r"\bsights\b","specs"),(r"\bsight\b","spec")],TF+"masks.py")
prose([(r"\bFocus\(across=","AttentionTarget(cross_attention="),(r"\bFocus\b","AttentionTarget"),(r"\bin focus\b","in the target"),(r"the focus\b","the target"),(r"# A focus:","# A target:"),(r"An experiment:","An intervention:")],AN,"tests/analysis")
prose([(r"# Aims:","# Targets:"),(r"head and aim:","head and target:"),(r"where aims ask","where targets ask"),(r"3 heads aims","3 heads targets")],AN+"/roles")
prose([(r"The lettering of","The layout of")],FIG); prose([(r"(?<![\w.])Map\.of\(","HeadMap.of("),(r"\bMap\\\.of\\\(",r"HeadMap\\.of\\(")],FIG,"tests/figures")
prose([(r"latest atlases","maps of the latest texts"),(r"Keep an atlas\b","Keep the maps of a text"),(r"The atlas of this id","The maps of this id"),(r"\batlases\b","maps of texts")],EXP)
prose([(r"`AttentionMap\.pooled`","`AttentionMap.pool`"),(r"`AttentionMap\.top`","`AttentionMap.topk`"),(r"all but concentration","all but gini"),(r"special_weight or concentration","special_weight or gini"),(r"concentration, special_weight","gini, special_weight"),(r"for top\(5\)","for topk(5)")],REC,"tests")

# The command's help names the columns.
COLUMNS=dict(evenness="normalized_entropy",effective="effective_keys",visible="num_visible",peak="max_weight",above="count_above",concentration="gini",relation="kind")
p=ROOT/S/"cli/stats.py"; s=p.read_text()
a=s.index("with these columns:\n")+len("with these columns:\n"); b=s.index("    Each but received")
entries=[]
for line in s[a:b].splitlines():
    if re.match(r" {6}\S",line): entries.append(re.split(r"\s{2,}",line.strip(),maxsplit=1))
    else: entries[-1][1]+=" "+line.strip()
out=[]
import textwrap
for names,what in entries:
    names=re.sub(r"\w+",lambda m:COLUMNS.get(m[0],m[0]),names)
    lines=textwrap.wrap(what,100-36)
    if len(names)>28: out.append("      "+names)
    else: out.append(f"      {names:<30}{lines.pop(0)}")
    out+=[" "*36+l for l in lines]
s=s[:a]+"\n".join(out)+"\n"+s[b:]
s=s.replace("where relation is cross","where kind is cross").replace("or concentration.","or gini.")
p.write_text(s)

prose([(r"\bkeep=(?=\{)","last_calls=")],REC+"/observe.py")
prose([(r'^"keep"$','"last_calls"'),(r"(?<=[(, ])keep=(?=[\d\"T])","last_calls="),(r"; keep=1\.5","; last_calls=1.5")],"tests/recording")
prose([(r"\btrace\.note\(","trace.record(")],"tests/figures","tests/recording","tests/explorer")
prose([(r"\bfigures\.figure_of\b","figures.plot_trace")],S,"tests","benchmarks","scripts")

# formats
prose([(r"attlas trace 1\b","attlas trace 2")],"tests")
q=ROOT/"tests/recording/test_trace.py"; t=q.read_text()
a="def test_another_safetensors_file_is_no_trace(tmp_path):"
assert t.count(a)==1
q.write_text(t.replace(a,'''def test_a_file_of_the_old_format_is_told_from_a_damaged_one(tmp_path):
    metadata = {"format": "attlas trace 1", "readings": "[]", "source": "[]", "target": "[]"}
    save_file({"x": torch.zeros(1)}, tmp_path / "trace", metadata)
    with pytest.raises(AttlasError, match=r"format 'attlas trace 2'; got 'attlas trace 1' in .*observe"):
        Trace.load(tmp_path / "trace")


'''+a))
text(S+"recording/trace.py",(r'"pass a file that Trace\.save wrote"','"pass a file that Trace.save of this version wrote, or observe the model again"'))

text(S+"corpus_statistics/table.py",(r'^NUMBERS = \(','FORMAT = 2\n"""The version of the names of the columns, in the facts that come with a table."""\n\nNUMBERS = ('))
text(S+"jobs/statistics.py",(r'^(\s+)"torch": str\(torch\.__version__\),\n(\s+\*\*reader\.facts)',r'\1"torch": str(torch.__version__),\n\1"format": FORMAT,\n\2'),
     (r'^(from attlas\.corpus_statistics\.table import) (\(?)',r'\1 \2FORMAT, '))

# pages
CODE=[(r"\breading\b(?=\.\w|\)| =|\[)","attention_map"),(r"(?<=\()reading\b","attention_map"),(r"\.pooled\(",".pool("),(r"\.top\(",".topk("),(r"trace\.relation\b","trace.kind"),(r"\bkeep=n","last_calls=n"),
      (r"\bclustered\b","cluster_heads"),(r"\bFocus\b","AttentionTarget"),(r"\bfocus = ","target = "),(r", focus\b(?=[,)])",", target"),(r"\badversary\b(?=[,(])","adversarial_weights"),
      (r"\b([Aa]) reading\b",r"\1n attention map"),(r"\bReadings\b","Attention maps"),(r"(?<!both )\breadings\b","attention maps"),(r"\b(its|the|one|One|this|The) reading\b",r"\1 attention map")]
for name in ("docs/seeing.md","docs/analysis.md","docs/design.md"): 
    q=ROOT/name; t=q.read_text()
    for x,y in CODE: t=re.sub(x,y,t)
    q.write_text(t)
q=ROOT/"docs/design.md"; t=q.read_text()
for x,y in ((r"`tap\.heard`","`hook.is_recording`"),(r"`tap\.note\(","`hook.record("),(r"`tap\.intervened`","`hook.is_patched`"),(r"`tap\.rewrite\(","`hook.patch("),(r"\ba `AttentionHook`","an `AttentionHook`"),(r"\btaps\b","hooks"),(r"an `Experiment`","an `Intervention`"),(r"`Rows` are","`AttentionRows` are"),(r"\ba `AttentionTarget`","an `AttentionTarget`")): t=re.sub(x,y,t)
q.write_text(t)
q=ROOT/"docs/statistics.md"; t=q.read_text()
for x,y in COLUMNS.items(): t=re.sub(rf"`{x}`",f"`{y}`",t)
t=t.replace("--also concentration","--also gini").replace("--also on_special","--also special_weight").replace("the options (threshold, layers, columns, tokens), and the versions","the options (threshold, layers, columns, tokens), the format of the columns (2), and the versions")
q.write_text(t)
q=ROOT/"docs/seeing.md"; t=q.read_text()
for x,y in COLUMNS.items():
    if x!="relation": t=re.sub(rf"`{x}`",f"`{y}`",t)
t=re.sub(r"the weight `first_weight`, `last_weight`, `self_weight`, `previous_weight` and `next_weight`","the weights `first_weight`, `last_weight`, `self_weight`, `previous_weight` and `next_weight`",t)
q.write_text(t)
# what the benchmarks call their contenders
for q in [*(ROOT/"benchmarks").glob("*.py"),ROOT/"benchmarks/results.json",ROOT/"benchmarks/README.md",*(ROOT/"tests/benchmarks").glob("*.py")]:
    t=q.read_text(); n=t.replace("reading.summary()","attention_map.summary()").replace("reading.pooled()","attention_map.pool()")
    if n!=t: q.write_text(n)
# long lines
import shutil
if shutil.which("ruff"): subprocess.run(["ruff","format","-q","."],cwd=ROOT)
subprocess.run([sys.executable,str(Path(__file__).with_name("reflow.py")),str(ROOT)],check=True,stdout=subprocess.DEVNULL)
