"""python reflow.py CHECKOUT [LIMIT]: wraps lines of docstrings, comments and lone string arguments that a rename made too long."""
import io, re, sys, tokenize
from pathlib import Path
ROOT=Path(sys.argv[1]); LIMIT=int(sys.argv[2]) if len(sys.argv)>2 else 100
def cut(line):
    i=line.rfind(' ',0,LIMIT+1); return line[:i],line[i+1:]
def text_end(l): return re.sub(r'("""|\'\'\')$','',l)
def fix(src):
    lines=src.split('\n')
    for _ in range(400):
        long=[i for i,l in enumerate(lines) if len(l)>LIMIT]
        if not long: break
        toks=list(tokenize.generate_tokens(io.StringIO('\n'.join(lines)).readline)); done=False
        for i in long:
            line=lines[i]; indent=line[:len(line)-len(line.lstrip())]
            doc=next((t for t in toks if t.type==tokenize.STRING and '"""' in t.string[:5] and t.start[0]<=i+1<=t.end[0]),None)
            if doc is not None:
                first,last=doc.start[0]-1,doc.end[0]-1
                if line[len(indent):].startswith(('|','>>>')): continue
                head,rest=cut(line)
                if len(head.strip())<20: continue
                base=lines[first][:len(lines[first])-len(lines[first].lstrip())] if i==first else indent
                nxt=lines[i+1] if i<last else ''
                same=i<last and nxt.strip() and nxt.strip()!='"""' and nxt[:len(nxt)-len(nxt.lstrip())]==base and not re.match(r'\s*(-|\*|\d+\.) ',nxt) and not line.rstrip().endswith('::')
                # the last line of a paragraph may only be followed by the same paragraph
                if same: lines[i:i+2]=[head,base+rest+' '+nxt.strip()]
                else: lines[i:i+1]=[head,base+rest]
                done=True; break
            com=next((t for t in toks if t.type==tokenize.COMMENT and t.start[0]==i+1),None)
            if com is not None and line.lstrip().startswith('#'):
                head,rest=cut(line); nxt=lines[i+1] if i+1<len(lines) else ''
                if nxt.startswith(indent+'# '): lines[i:i+2]=[head,indent+'# '+rest+' '+nxt[len(indent)+2:]]
                else: lines[i:i+1]=[head,indent+'# '+rest]
                done=True; break
            m=re.fullmatch(r'(\s*)(f?)"((?:[^"\\]|\\.)*)"([,)\]]*)',line)
            if m:
                ind,f,body,end=m.groups(); room=LIMIT-len(ind)-len(f)-2
                k=body.rfind(' ',0,room)
                if k>10 and not (f and body[:k+1].count('{')!=body[:k+1].count('}')):
                    lines[i:i+1]=[f'{ind}{f}"{body[:k+1]}"',f'{ind}{f if "{" in body[k+1:] else ""}"{body[k+1:]}"{end}']
                    if f and '{' not in body[:k+1]: lines[i]=lines[i].replace('f"','"',1)
                    done=True; break
        if not done: break
    return '\n'.join(lines)
for b in ('src','tests','benchmarks','scripts'):
    for p in (ROOT/b).rglob('*.py'):
        if '.peers' in p.parts: continue
        s=p.read_text()
        if any(len(l)>LIMIT for l in s.split('\n')):
            n=fix(s)
            if n!=s: p.write_text(n)
            for i,l in enumerate(n.split('\n'),1):
                if len(l)>LIMIT and 'noqa' not in l: print(f'still long {p.relative_to(ROOT)}:{i}: {l.strip()[:90]}')
