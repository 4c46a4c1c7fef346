"""Rename identifiers: python rename.py TABLE.json CHECKOUT

TABLE is a list of entries, done in order, each in one pass over the Python files:
  {"old": "remember", "new": "project_kv",
   "where": "any"      every NAME token (default): variables, attributes, parameters, keyword arguments
            "attr"     only after a dot
            "bare"     only not after a dot (parameters, variables, keyword arguments, definitions)
            "call"     keyword arguments in calls and parameters in definitions: NAME followed by = or : inside parentheses
            "string"   string literals that are exactly the old word ("real" → "token_mask")
   "in": ["src/attlas/layers/", ...]   path prefixes or globs (default: all of src tests benchmarks scripts)
   "not_in": [...],
   "within": ["Class.method", "function"], "not_within": [...]   only (not) inside the definitions of these names
   "text": true        also in comments, docstrings and other strings, as a whole word (default: only where the old
                       name is not an ordinary word, i.e. it has an underscore or an inner capital; in
                       backticks always, "never" = code alone) }
Word-for-word edits that do not fit stand in a list of {"file":..., "from":..., "to":..., "count": n} entries
in the same table; one that finds nothing is an error.
An entry {"fstrings": true} in the table: its names are renamed in the replacement fields of f-strings, too.
An entry {"annotations": true}: names with a capital are renamed in quoted annotations, too ("Scored | None", "list[Link]").
An entry {"parametrize": true}: the names in the first argument of pytest's parametrize follow the parameters.
Markdown pages: identifiers in backticks or fenced code are renamed for entries without "in" or whose "in" names "docs".
"""
import ast, io, json, re, sys, tokenize, fnmatch
from pathlib import Path
ROOT=Path(sys.argv[2]); TABLE=json.load(open(sys.argv[1]))
FILES=[p for b in ('src','tests','benchmarks','scripts') for p in (ROOT/b).rglob('*.py') if '.peers' not in p.parts and '.egg' not in str(p)]
DOCS=[*ROOT.glob('*.md'),*(ROOT/'docs').rglob('*.md'),*(ROOT/'benchmarks').glob('*.md')]
def matches(rel,pats): return any(rel.startswith(x) or fnmatch.fnmatch(rel,x) for x in pats)
def technical(word): return '_' in word or bool(re.search(r'[a-z0-9][A-Z]',word)) or bool(re.match(r'[A-Z][a-z]+[A-Z]',word))
def in_text(text,e):
    w=re.escape(e['old'])
    if e.get('text')=='never': return text
    if e.get('text',technical(e['old'])): return re.sub(rf'(?<![\w.]){w}(?!\w)' if e.get('where')!='attr' else rf'(?<!\w){w}(?!\w)',e['new'],text)
    return re.sub(rf'(?<=`){w}(?=[`(\[.=])',e['new'],text)
def spans(src):
    out=[]
    def go(node,path):
        for n in ast.iter_child_nodes(node):
            if isinstance(n,(ast.FunctionDef,ast.AsyncFunctionDef,ast.ClassDef)):
                q=f'{path}.{n.name}'; first=min([n.lineno,*(d.lineno for d in n.decorator_list)])
                out.append((q,first,n.end_lineno)); go(n,q)
            else: go(n,path)
    go(ast.parse(src),''); return out
def inside(line,names,where): return any(a<=line<=b and any(q.endswith('.'+w) for w in names) for q,a,b in where)
def fields(s):
    """Begin and end of the expression of each replacement field of an f-string's source."""
    i=0
    while i<len(s):
        if s[i]=='{' and s[i+1:i+2]=='{': i+=2; continue
        if s[i]!='{': i+=1; continue
        j=i+1; d=0; q=None
        while j<len(s):
            c=s[j]
            if q: q=None if c==q else q
            elif c in '"\'': q=c
            elif c in '([{': d+=1
            elif c in ')]' or (c=='}' and d): d-=1
            elif not d and (c=='}' or c==':' or (c=='!' and s[j+1:j+2]!='=')): break
            j+=1
        yield i+1,j
        i=j  # a format spec may have fields of its own
        if s[j:j+1]=='}': i=j+1
        else:
            i=j+1
def expression(text,es,ok,line):
    by={}
    for e in es:
        if e.get('where')!='string': by.setdefault(e['old'],[]).append(e)
    try: toks=list(tokenize.generate_tokens(io.StringIO('('+text+')').readline))
    except (tokenize.TokenError,IndentationError,SyntaxError): return text
    out=[];last=0;prev=None
    class T: start=(line,0)
    body='('+text+')'; starts=[0]
    for l in body.splitlines(keepends=True): starts.append(starts[-1]+len(l))
    for k,t in enumerate(toks):
        if t.type==tokenize.NAME and t.string in by:
            dot=prev=='.'; nx=toks[k+1].string if k+1<len(toks) else ''
            for e in by[t.string]:
                w=e.get('where','any')
                if not ok(e,T): continue
                if w=='any' or (w=='attr' and dot) or (w=='bare' and not dot) or (w=='call' and not dot and nx in ('=',':')):
                    a=starts[t.start[0]-1]+t.start[1]; b=starts[t.end[0]-1]+t.end[1]
                    out+=[body[last:a],e['new']]; last=b; break
        prev=t.string
    out.append(body[last:])
    return ''.join(out)[1:-1]
def fstring(s,es,ok,line):
    out=[];last=0
    for a,b in fields(s): out+=[s[last:a],expression(s[a:b],es,ok,line)]; last=b
    out.append(s[last:]); return ''.join(out)
ANNOTATIONS=any('annotations' in e for e in TABLE)
def parses(text):
    try: ast.parse(text,mode='eval'); return True
    except SyntaxError: return False
PARAMETRIZE=any('parametrize' in e for e in TABLE)
FSTRINGS=any('fstrings' in e for e in TABLE)
def python(src,es):
    where=spans(src) if any('within' in e or 'not_within' in e for e in es) else []
    ok=lambda e,t: ('within' not in e or inside(t.start[0],e['within'],where)) and not ('not_within' in e and inside(t.start[0],e['not_within'],where))
    try: toks=list(tokenize.generate_tokens(io.StringIO(src).readline))
    except (tokenize.TokenError,IndentationError,SyntaxError) as error: print('cannot read',error); return src
    by={}
    for e in es: by.setdefault(e['old'],[]).append(e)
    starts=[0]
    for l in src.splitlines(keepends=True): starts.append(starts[-1]+len(l))
    pos=lambda rc: starts[rc[0]-1]+rc[1]
    out=[];last=0;depth=0
    sig=[t for t in toks if t.type not in (tokenize.NL,tokenize.COMMENT)]
    nxt={id(t):sig[i+1] if i+1<len(sig) else None for i,t in enumerate(sig)}
    prv={id(t):sig[i-1] if i else None for i,t in enumerate(sig)}
    named_here=set()
    for i,t in enumerate(sig):
        if t.string=='parametrize' and i+2<len(sig) and sig[i+1].string=='(':
            if sig[i+2].string in '([':
                k=i+3
                while sig[k].string not in ')]': named_here.add(id(sig[k])); k+=1
            else: named_here.add(id(sig[i+2]))
    for t in toks:
        if t.type==tokenize.OP:
            if t.string in '([{': depth+=1
            elif t.string in ')]}': depth-=1
        new=None
        if t.type==tokenize.NAME and t.string in by:
            b,a=prv.get(id(t)),nxt.get(id(t))
            dot=b is not None and b.string=='.'
            for e in by[t.string]:
                w=e.get('where','any')
                if not ok(e,t): continue
                if w=='any' or (w=='attr' and dot) or (w=='bare' and not dot) or (w=='call' and depth and not dot and a is not None and a.string in '=:'):
                    new=e['new']; break
        elif t.type==tokenize.COMMENT or t.type==tokenize.STRING or t.type==getattr(tokenize,'FSTRING_MIDDLE',-1):
            s=t.string
            if PARAMETRIZE and id(t) in named_here:
                def named(m):
                    for e in by.get(m[0],()):
                        if e.get('where','any') in ('any','bare') and ok(e,t): return e['new']
                    return m[0]
                n=re.sub(r'\w+',named,s)
                if n!=s: out.append(src[last:pos(t.start)]); out.append(n); last=pos(t.end)
                continue
            for e in es:
                if not ok(e,t): continue
                if e.get('where')=='string':
                    m=re.fullmatch(r'''([rbuRBU]*)(['"])(.*)\2''',s,re.S)
                    if m and m.group(3)==e['old']: s=f'{m.group(1)}{m.group(2)}{e["new"]}{m.group(2)}'
                elif e['old'] in s: s=in_text(s,e)
            if ANNOTATIONS and t.type==tokenize.STRING and re.fullmatch(r'"[\w\[\], |.]+"',s) and parses(s[1:-1].strip()) and (b:=prv.get(id(t))) is not None and b.string in ('->',':','[',',','|','(','='):
                for e in es:
                    if e['old'][:1].isupper() and e.get('where','any') in ('any','bare') and ok(e,t): s=re.sub(rf"(?<![\w.]){re.escape(e['old'])}(?!\w)",'\0'+e['new'],s)
                s=s.replace('\0','')
            if FSTRINGS and t.type==tokenize.STRING and 'f' in re.match(r'[A-Za-z]*',t.string).group(0).lower(): s=fstring(s,es,ok,t.start[0])
            if s!=t.string: new=s
        if new is not None:
            out.append(src[last:pos(t.start)]); out.append(new); last=pos(t.end)
    out.append(src[last:])
    return ''.join(out)
entries=[e for e in TABLE if 'old' in e]; edits=[e for e in TABLE if 'file' in e]
for p in FILES:
    rel=str(p.relative_to(ROOT)); es=[e for e in entries if matches(rel,e.get('in',[''])) and not matches(rel,e.get('not_in',[]))]
    s=p.read_text(); n=python(s,es)
    if n!=s: p.write_text(n)
for p in DOCS:
    if p.name in ('log.md','CHANGELOG.md'): continue
    s=p.read_text(); n=s
    for e in entries:
        if ('in' in e and 'docs' not in e['in']) or e.get('where')=='string': continue
        w=re.escape(e['old'])
        n=re.sub(rf'`[^`\n]*`',lambda m:re.sub(rf'(?<![\w-]){w}(?![\w-])',e['new'],m.group(0)),n)
        n=re.sub(r'(?ms)^```.*?^```',lambda m:re.sub(rf'(?<![\w-]){w}(?![\w-])',e['new'],m.group(0)) if technical(e['old']) else m.group(0),n)
    if n!=s: p.write_text(n)
for e in edits:
    p=ROOT/e['file']; s=p.read_text()
    if s.count(e['from'])<e.get('count',1): print('NOT FOUND',e['file'],repr(e['from'][:70]))
    p.write_text(s.replace(e['from'],e['to']))
