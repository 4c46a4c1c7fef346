import type { Plugin } from "vite";

/** Text of a module of Preact, and what stands there instead; each stands there once. */
type Change = readonly [string, string];

// The explorer draws HTML by functions: no classes, no SVG, no portals, no HTML of its own, and nothing from a server.
const CORE: readonly Change[] = [
  // Hydration and suspended components.
  [
    "128&u.__u&&(c=32&u.__u,s=u.__c.__z)&&(r.__u|=c,p=o=[],8==s.nodeType?l=B(s,o):o.push(s),l=o[0]||l),",
    "",
  ],
  [
    'if(t&&t.then){if(r.__u|=128|c,o){for(~(T=o.indexOf(l||void 0))||(T=o.length);(N=o[T-1])&&8==N.nodeType;)T--;for(;T<o.length;T++)if(N=o[T])if(o[T]=null,O){if(N==P)break}else{if(8!=N.nodeType)break;N.data.startsWith("$s")&&(P=B(O=N))}}if(!O){for(;l&&8==l.nodeType&&l.nextSibling;)l=l.nextSibling;O=l}(s=B(O=r.__c.__z||(r.__c.__z=O)))?(r.__e=O,l=s):r.__e=l,l=l&&l.nextSibling}else o&&o.some(g);',
    "o&&o.some(g);",
  ],
  ["t&&t.then||D(r),", "D(r),"],
  ["p&&p.some(g),", ""],
  ["!u&&(i=t.__c)&&(i=i.__z)&&(f=B(i,o=[]))&&(i==t.__e&&o.some(g),g(f),g(i)),", ""],
  ['&&!t.data.startsWith("$s")', ""],
  ["l&&(n.__m&&n.__m(r,o),l=!1),", ""],
  ["!l&&o)for", "o)for"],
  ['l&&"function"!=typeof k||', ""],
  ['l&&"textarea"!=C||(', "("],
  ["l&&t.data==x||", ""],
  // Classes, and the contexts and errors of which they take care.
  ["C=(s=V.prototype)&&s.render,j=(s=V.contextType)&&i[s.__c],L=s?j?j.props.value:s.__:i,", "L=i,"],
  [
    "(C?r.__c=d=new V(M,L):(r.__c=d=new x(M,L),d.constructor=V,d.render=K),j&&j.sub(d),",
    "(r.__c=d=new x(M,L),d.constructor=V,d.render=K,",
  ],
  [
    "C&&(d.__s||(d.__s=d.state),V.getDerivedStateFromProps&&(d.__s==d.state&&(d.__s=_({},d.__s)),_(d.__s,V.getDerivedStateFromProps(M,d.__s)))),k=d.props,b=d.state,",
    "",
  ],
  [
    "M!==k&&C&&!V.getDerivedStateFromProps&&d.componentWillReceiveProps&&d.componentWillReceiveProps(M,L),",
    "",
  ],
  [
    "d.componentWillUpdate&&d.componentWillUpdate(M,d.__s,L),C&&d.componentDidUpdate&&d.__h.push(function(){d.componentDidUpdate(k,b,m)})}else C&&!V.getDerivedStateFromProps&&d.componentWillMount&&d.componentWillMount(),C&&d.componentDidMount&&d.__h.push(d.componentDidMount);",
    "}",
  ],
  ["q=C?25:0;", "q=0;"],
  ["C&&(y.push.apply(d.__h,d.__k),d.__k=[]),", ""],
  ["C&&u.__c&&d.getSnapshotBeforeUpdate&&(m=d.getSnapshotBeforeUpdate(k,b)),", ""],
  ["if(i.componentWillUnmount)try{i.componentWillUnmount()}catch(t){n.__e(t,r)}", ""],
  [
    "for(var i,o,e;t=t.__;)if((i=t.__c)&&!(1&i.__g)){i.__g|=4;try{if((e=(o=i.constructor)&&o.getDerivedStateFromError)&&i.setState(o.getDerivedStateFromError(n)),i.componentDidCatch&&(i.componentDidCatch(n,u||{}),e=1),e&&8&i.__g)return void(i.__g|=2)}catch(t){n=t}}",
    "for(var i;t=t.__;)(i=t.__c)&&!(1&i.__g)&&(i.__g|=4);",
  ],
  [
    "x.prototype.setState=function(n,t){var r=this.__s;r&&r!=this.state||(r=this.__s=_({},this.state)),\"function\"==typeof n&&(n=n(_({},r),this.props)),n&&(_(r,n),this.__v&&(t&&this.__k.push(t),L(this)))},x.prototype.forceUpdate=function(n){this.__v&&(this.__g|=4,n&&this.__h.push(n),L(this))},x.prototype.render=$,",
    "x.prototype.setState=function(){this.__s=_({},this.state),this.__v&&L(this)},",
  ],
  // Portals.
  [
    "M.__P&&(s=l,f=(t=M.__P).namespaceURI,c=o=null,u.props&&u.props.__P!=t&&(u.__k.some(function(n){n&&J(n,n)}),u.__k=null),l=u.__k?S(u,0):null),",
    "",
  ],
  ["M.__P&&(r.__e=null,l=s),", ""],
  ['"function"!=typeof n.type||n.props.__P?null:S(n)', '"function"!=typeof n.type?null:S(n)'],
  ["if(n.props.__P)return t;", ""],
  ["&&!n.props.__P", ""],
  ["u&&!t.props.__P", "u"],
  // SVG, MathML, templates, elements that a page defines, and HTML as text.
  [
    'if("svg"==C?f="http://www.w3.org/2000/svg":"math"==C?f="http://www.w3.org/1998/Math/MathML":f||(f="http://www.w3.org/1999/xhtml"),o)',
    "if(o)",
  ],
  ["M.createElementNS(f,C,x.is?x:a)", "M.createElement(C)"],
  ['a="template"==C&&t.content||t', "a=t"],
  ['"dangerouslySetInnerHTML"==s?y=k:', ""],
  ['"dangerouslySetInnerHTML"==s?h=k:', ""],
  [
    'h?(l||y&&(h.__html==y.__html||h.__html==t.innerHTML)||(t.innerHTML=h.__html),r.__k=[]):(y&&(t.textContent=""),("foreignObject"==C||"http://www.w3.org/1998/Math/MathML"==f&&v.test(C))&&(f="http://www.w3.org/1999/xhtml"),',
    "(",
  ],
  [
    'if("http://www.w3.org/2000/svg"==i)t=t.replace(/xlink(H|:h)/,"h").replace(/sName$/,"s");else if(',
    "if(",
  ],
  // Options of tools for developers.
  ["n.event?n.event(r):r", "r"],
  ["&&i==n.debounceRendering||((i=n.debounceRendering)||queueMicrotask)(H)", "||queueMicrotask(H)"],
  ["(i||queueMicrotask)(H)", "queueMicrotask(H)"],
  ["n.__&&n.__(t,r),9==r.nodeType&&(r=r.documentElement),", ""],
];

const HOOKS: readonly Change[] = [
  ["v=a.__b,l=a.__r,m=a.diffed,h=a.__c,s=a.unmount,p=a.__;", "v;"],
  ["a.__h&&a.__h(r,n,f||t),f=0;", ""],
  ["r=null,v&&v(n)}", "r=null}"],
  ["a.__=function(n,t){n&&t.__k&&t.__k.__m&&(n.__m=t.__k.__m),p&&p(n,t)},", ""],
  ["l&&l(n),t=0;", "t=0;"],
  ["m&&m(n);", ""],
  [",h&&h(n,t)}", "}"],
  ["s&&s(n);", ""],
  ["!a.__s&&E(i.__H,u)&&(i.__P=!0", "E(i.__H,u)&&(i.__P=!0"],
  ["!a.__s&&E(i.__H,u)&&(i.__P=!1", "E(i.__H,u)&&(i.__P=!1"],
  ["var c=r.shouldComponentUpdate;", ""],
  [
    "if(u.__.some(function(n){n.__N&&(i=!0,o(n.__[0],n.__N[0])||(f=!0))}),c){var e=c.call(this,n,t,r);return i?e||f:e}",
    "u.__.some(function(n){n.__N&&(i=!0,o(n.__[0],n.__N[0])||(f=!0))});",
  ],
];

/** Preact without the parts that the explorer has no use for. A version whose text is another one ends the build. */
export function preactParts(): Plugin {
  return {
    name: "preact-parts",
    apply: "build",
    transform(code, id) {
      const changes = /preact\/dist\/preact\.mjs$/.test(id) ? CORE : /hooks\/dist\/hooks\.mjs$/.test(id) ? HOOKS : null;
      if (changes === null) return null;
      const changed = changes.reduce((text, [from, to]) => {
        if (text.split(from).length !== 2) throw new Error(`not once in ${id}: ${from}`);
        return text.split(from).join(to);
      }, code);
      return { code: changed, map: null };
    },
  };
}
