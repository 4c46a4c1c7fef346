"""Fifty tokens that would do harm where a page took them for more than text."""

# Of each token, what the page shows of it. Whatever runs sets `window.attacked`; whatever is
# fetched comes from a server that is not the page's.
LABELS = {
    # Markup and scripts.
    "<script>window.attacked=1</script>": "<script>window.attacked=1</script>",
    "</script><script>attacked=1</script>": "</script><script>attacked=1</script>",
    "</SCRIPT ><script>attacked=1//": "</SCRIPT ><script>attacked=1//",
    "<!--<script>": "<!--<script>",
    "--><script>attacked=1</script>": "--><script>attacked=1</script>",
    "]]><script>attacked=1</script>": "]]><script>attacked=1</script>",
    "</title><script>attacked=1</script>": "</title><script>attacked=1</script>",
    "<img src=x onerror=attacked=1>": "<img src=x onerror=attacked=1>",
    "<img/src=//evil.invalid/i.png>": "<img/src=//evil.invalid/i.png>",
    "<iframe srcdoc='<script>attacked=1'>": "<iframe srcdoc='<script>attacked=1'>",
    "<iframe src=javascript:attacked=1>": "<iframe src=javascript:attacked=1>",
    "<object data=//evil.invalid/o>": "<object data=//evil.invalid/o>",
    "<embed src=//evil.invalid/e>": "<embed src=//evil.invalid/e>",
    "<link rel=stylesheet href=//evil.invalid>": "<link rel=stylesheet href=//evil…",
    "<base href=//evil.invalid/>": "<base href=//evil.invalid/>",
    "<meta http-equiv=refresh content=0>": "<meta http-equiv=refresh content=0>",
    "<form action=//evil.invalid><input>": "<form action=//evil.invalid><input>",
    "<details open ontoggle=attacked=1>": "<details open ontoggle=attacked=1>",
    "<video><source onerror=attacked=1>": "<video><source onerror=attacked=1>",
    "<template shadowrootmode=open>": "<template shadowrootmode=open>",
    # SVG and mathematics.
    "<svg onload=attacked=1>": "<svg onload=attacked=1>",
    "<svg><script>attacked=1</script></svg>": "<svg><script>attacked=1</script></svg>",
    "<svg><image href=//evil.invalid/s>": "<svg><image href=//evil.invalid/s>",
    "<math><mtext><img onerror=attacked=1>": "<math><mtext><img onerror=attacked=1>",
    # Attributes and quotes.
    '" onmouseover="attacked=1': '" onmouseover="attacked=1',
    "' autofocus onfocus='attacked=1": "' autofocus onfocus='attacked=1",
    "`${window.attacked=1}`": "`${window.attacked=1}`",
    '\\"-(attacked=1)-"': '\\"-(attacked=1)-"',
    "&lt;img src=x&gt;&#x3c;&amp;": "&lt;img src=x&gt;&#x3c;&amp;",
    # Style sheets.
    "</style><script>attacked=1</script>": "</style><script>attacked=1</script>",
    "}*{background:url(//evil.invalid/c)}": "}*{background:url(//evil.invalid/c)}",
    "@import url(//evil.invalid/c.css);": "@import url(//evil.invalid/c.css);",
    # Addresses.
    "javascript:window.attacked=1": "javascript:window.attacked=1",
    "data:text/html,<script>attacked=1": "data:text/html,<script>attacked=1",
    "https://evil.invalid/u?q=1#text=a": "https://evil.invalid/u?q=1#text=a",
    "#text=%3Cscript%3E&v=1&l=0": "#text=%3Cscript%3E&v=1&l=0",
    # Templates and formulas.
    "{{constructor.constructor('a')()}}": "{{constructor.constructor('a')()}}",
    "<%= attacked %>${attacked=1}#{1}": "<%= attacked %>${attacked=1}#{1}",
    '=HYPERLINK("//evil.invalid")': '=HYPERLINK("//evil.invalid")',
    # A name that objects have.
    "__proto__": "__proto__",
    # Pieces and bytes of vocabularies.
    "##<b>x</b>": "<b>x</b>",
    "<0x3C>": "<",
    "<0xE6>": "⟨E6⟩",
    # What is not seen, and what turns text round.
    "\u202eabc\u0000": "⟨right-to-left override⟩abc⟨NUL⟩",
    "\u2028\u2029": "⟨line separator⟩⟨paragraph separator⟩",
    "\ufeff\x1b[31m": "⟨byte order mark⟩⟨escape⟩[31m",
    "a\u200bb": "a⟨zero-width space⟩b",
    "👩\u200d🚀": "👩\u200d🚀",
    "\ud800": "\ud800",  # half of a surrogate pair
    # A long one.
    "<b>" + "x" * 10_000: "<b>" + "x" * 29 + "…",
}
HOSTILE = list(LABELS)
