function e(e) {
	return {
		rows: {
			from: 0,
			to: e.queries
		},
		keys: {
			from: 0,
			to: e.keys
		}
	};
}
function t(e) {
	return e.to - e.from;
}
function n(e) {
	return Math.min(t(e), 512);
}
function r(e) {
	return t(e.rows) > 512 || t(e.keys) > 512;
}
function i(e, r, i = n(e)) {
	let a = (n) => e.from + Math.floor(n * t(e) / i);
	return {
		from: a(r),
		to: a(r + 1)
	};
}
function a(n, r) {
	let i = e(r), a = (e, n) => d(Math.round((e.from + e.to) / 2), t(e) * 8, n);
	return {
		rows: a(n.rows, i.rows),
		keys: a(n.keys, i.keys)
	};
}
function o(t, n, r) {
	let i = n?.queries === r.queries && n.keys === r.keys;
	return t !== null && i ? t : e(r);
}
function s(t, n) {
	let r = ({ from: e, to: t }, n) => 0 <= e && e < t && t <= n;
	return t !== null && r(t.rows, n.queries) && r(t.keys, n.keys) ? t : e(n);
}
function c(n, r) {
	if (Math.max(r.queries, r.keys) <= 512) return e(r);
	let i = (e, n) => {
		if (t(e) > 512) return e;
		let r = Math.min(Math.max(2 * t(e), 64), 512);
		return d(Math.round((e.from + e.to) / 2), r, {
			from: 0,
			to: n
		});
	};
	return {
		rows: i(n.rows, r.queries),
		keys: i(n.keys, r.keys)
	};
}
function l(e, t) {
	let n = (e, t) => e.from <= t.from && t.to <= e.to;
	return n(e.rows, t.rows) && n(e.keys, t.keys);
}
function u(e, t) {
	let n = (e, t) => e.from === t.from && e.to === t.to;
	return n(e.rows, t.rows) && n(e.keys, t.keys);
}
function d(e, n, r) {
	let i = Math.min(n, t(r)), a = Math.min(Math.max(e - Math.floor(i / 2), r.from), r.to - i);
	return {
		from: a,
		to: a + i
	};
}
// src/explorer.css?inline
var f, p, m, h, g, _, v, y, b, x, S, ee = Symbol.for("pv"), C = {}, te = [], w = /^m(i|n|o|s|text|space)$/, ne = Array.isArray, T = te.slice, E = Object.assign;
function D(e) {
	e && e.parentNode && e.remove();
}
function O(e, t, n) {
	var r, i, a, o = {}, s = arguments.length;
	for (a in t) a == "key" ? r = t[a] : a == "ref" && typeof e != "function" ? i = t[a] : o[a] = t[a];
	return s > 2 && (o.children = s > 3 ? T.call(arguments, 2) : n), k(e, o, r, i, null);
}
function k(e, t, n, r, i) {
	var a = {
		type: e,
		props: t,
		key: n,
		ref: r,
		__k: null,
		__: null,
		__b: 0,
		__e: null,
		__c: null,
		constructor: ee,
		__v: i || ++p,
		__i: -1,
		__u: 0
	};
	return !i && f.vnode && f.vnode(a), a;
}
function A(e) {
	return e.children;
}
function re(e, t) {
	this.props = e, this.context = t, this.__g = 0;
}
function j(e, t) {
	if (t == null) return e.__ && j(e.__, e.__i + 1);
	for (var n; t < e.__k.length; t++) if ((n = e.__k[t]) && n.__e) return n.__e;
	return typeof e.type != "function" || e.props.__P ? null : j(e);
}
function M(e) {
	var t, n = e.__v, r = n.__e, i = [], a = [], o = e.__P;
	o && ((t = E({ constructor: ee }, n)).__v = n.__v + 1, f.vnode && f.vnode(t), pe(o, t, n, e.__n, o.namespaceURI, 32 & n.__u ? [r] : null, i, r || j(n), 32 & n.__u, a), t.__v = n.__v, t.__.__k[t.__i] = t, ge(i, t, a), n.__ = n.__e = null, t.__e != r && N(t));
}
function N(e) {
	if ((e = e.__) && e.__c && !e.props.__P) return e.__e = null, e.__k.some(function(t) {
		return t && (e.__e = t.__e);
	}), N(e);
}
function ie(e) {
	(8 & e.__g || (e.__g |= 8, m.push(e), g++)) && h == f.debounceRendering || ((h = f.debounceRendering) || queueMicrotask)(ae);
}
function ae() {
	try {
		for (var e, t = 1; m.length;) m.length > t && m.sort(_), e = m.shift(), t = m.length, 8 & e.__g && M(e);
	} finally {
		(g = m.length) && (h || queueMicrotask)(ae);
	}
}
function oe(e, t, n, r, i, a, o, s, c, l, u) {
	var d, f, p, m, h, g, _ = r.__k || te, v = t.length;
	for (c = se(n, t, _, c, v), d = 0; d < v; d++) (p = n.__k[d]) != null && (f = ~p.__i && _[p.__i] || C, p.__i = d, g = pe(e, p, f, i, a, o, s, c, l, u), m = p.__e, (f.ref != p.ref || 8 & f.__u) && (f.ref && ve(f.ref, null, p, f), p.ref && u.push(p.ref, p.__c || m, p)), h ||= m, 4 & p.__u ? (c = ce(p, c, e, !f.__v), f.__e && (f.__e = null)) : typeof p.type == "function" && g !== void 0 ? c = g : m && (c = m.nextSibling), p.__u &= -21);
	return n.__e = h, c;
}
function se(e, t, n, r, i) {
	var a, o, s, c, l, u, d, f, p, m = n.length, h = m, g = 0, _ = 0, v = e.__k = Array(i);
	for (a = 0; a < i; a++) (o = t[a]) != null && typeof o != "boolean" && typeof o != "function" ? (typeof o != "object" || o.constructor === String ? o = v[a] = k(null, o) : ne(o) ? o = v[a] = k(A, { children: o }) : o.constructor === ee && o.__b ? o = v[a] = k(o.type, o.props, o.key, o.ref, o.__v) : v[a] = o, c = a + g, o.__ = e, o.__b = e.__b + 1, s = null, ~(l = o.__i = le(o, n, c, h)) && (h--, (s = n[l]) && (s.__u |= 2)), s && s.__v ? (o.__u |= 16, l == c - 1 ? g-- : l == c + 1 ? g++ : l != c && (l > c ? g-- : g++, _ = 1)) : (~l || (i > m ? g-- : i < m && g++), typeof o.type != "function" && (o.__u |= 4))) : v[a] = null;
	if (_) {
		for (u = [], d = [], a = 0; a < i; a++) if ((o = v[a]) && 16 & o.__u) {
			for (g = 0, f = u.length; g < f;) u[p = g + f >> 1] < o.__i ? g = p + 1 : f = p;
			u[g] = o.__i, d[a] = g + 1;
		}
		for (g = u.length; a--;) d[a] && (d[a] == g ? g-- : v[a].__u |= 4);
	}
	if (h) for (a = 0; a < m; a++) !(s = n[a]) || 2 & s.__u || (s.__e == r && (r = j(s)), ye(s, s));
	return r;
}
function ce(e, t, n, r) {
	var i, a, o, s;
	if (typeof e.type == "function") {
		if (e.props.__P) return t;
		if (i = e.__k) for (a = 0; a < i.length; a++) i[a] && (i[a].__ = e, t = ce(i[a], t, n, !1));
		return t;
	}
	for (t && !t.parentNode && (t = j(e)) && !t.parentNode && (t = null), o = e.__e, s = t; s && s.nodeType == 8;) s = s.nextSibling;
	for (o != s && (!r && n.moveBefore && o.parentNode ? n.moveBefore(o, t) : n.insertBefore(o, t || null)), t = o; (t &&= t.nextSibling) && t.nodeType == 8 && !t.data.startsWith("$s"););
	return t;
}
function le(e, t, n, r) {
	var i, a = e.key, o = e.type, s = t[n], c = s && !(2 & s.__u);
	if (s === null && a == null || c && a == s.key && o == s.type) return n;
	if (r > +!!c) {
		for (i = n - 1; i >= 0; i--) if ((s = t[i]) && !(2 & s.__u) && a == s.key && o == s.type) return i;
		for (i = n + 1; i < t.length; i++) if ((s = t[i]) && !(2 & s.__u) && a == s.key && o == s.type) return i;
	}
	return -1;
}
function ue(e, t, n) {
	n ??= "", t[0] == "-" ? e.setProperty(t, n) : e[t] = n;
}
function de(e, t, n, r, i) {
	var a, o;
	if (t == "style") {
		if (typeof n == "string") e.style.cssText = n;
		else {
			if (typeof r == "string" && (e.style.cssText = r = ""), r) for (t in r) n && t in n || ue(e.style, t);
			if (n) for (t in n) r && n[t] == r[t] || ue(e.style, t, n[t]);
		}
	} else if (t[0] == "o" && t[1] == "n") typeof n != "function" && (n = null), typeof r != "function" && (r = null), (e.__e ||= {})[t] = n, n && r || (o = x[t] || (x[t] = fe(t)), (e.__a ||= {})[t] = b, a = t != (t = t.replace(y, "$1")), (t = t.slice(2))[0] < "a" && (t = t.toLowerCase()), n ? e.addEventListener(t, o, a) : e.removeEventListener(t, o, a));
	else {
		if (i == "http://www.w3.org/2000/svg") t = t.replace(/xlink(H|:h)/, "h").replace(/sName$/, "s");
		else if (t != "width" && t != "height" && t != "href" && t != "list" && t != "form" && t != "tabIndex" && t != "download" && t != "rowSpan" && t != "colSpan" && t != "role" && t != "popover" && t in e) try {
			e[t] = n ?? "";
			return;
		} catch {}
		if (typeof n == "function") return;
		n == null || !1 === n && t[4] != "-" ? e.removeAttribute(t) : e.setAttribute(t, t == "popover" && n == 1 ? "" : n);
	}
}
function fe(e) {
	return function(t) {
		var n = this.__e;
		if (n) {
			if (n = n[e], t[v] == null) t[v] = b++;
			else if (t[v] < this.__a[e]) return;
			return n(f.event ? f.event(t) : t);
		}
	};
}
function pe(e, t, n, r, i, a, o, s, c, l) {
	var u, d, p, m, h, g, _, v, y, b, x, S, C, w, T, O, k, M, N = t.type;
	if (t.constructor !== ee) return null;
	128 & n.__u && (c = 32 & n.__u, u = n.__c.__z) && (t.__u |= c, d = a = [], u.nodeType == 8 ? s = me(u, a) : a.push(u), s = a[0] || s), (u = f.__b) && u(t);
	n: if (typeof N == "function") {
		p = o.length;
		try {
			if (v = t.props, y = (u = N.prototype) && u.render, b = (u = N.contextType) && r[u.__c], x = u ? b ? b.props.value : u.__ : r, (m = n.__c) ? (t.__c = m, 2 & m.__g && (m.__g |= 1)) : (y ? t.__c = m = new N(v, x) : (t.__c = m = new re(v, x), m.constructor = N, m.render = be), b && b.sub(m), m.state || (m.state = {}), m.__n = r, m.__g |= 8, m.__h = [], m.__k = []), y && (m.__s || (m.__s = m.state), N.getDerivedStateFromProps && (m.__s == m.state && (m.__s = E({}, m.__s)), E(m.__s, N.getDerivedStateFromProps(v, m.__s)))), h = m.props, g = m.state, m.__v = t, n.__c) {
				if (v !== h && y && !N.getDerivedStateFromProps && m.componentWillReceiveProps && m.componentWillReceiveProps(v, x), t.__v == n.__v && !(8 & m.__g) || !(4 & m.__g) && m.shouldComponentUpdate && !1 === m.shouldComponentUpdate(v, m.__s, x)) {
					t.__v != n.__v && (m.props = v, m.state = m.__s, m.__g &= -9), t.__e = n.__e, t.__k = n.__k, t.__k.some(function(e) {
						e && (e.__ = t);
					}), te.push.apply(m.__h, m.__k), m.__k = [], m.__h.length && o.push(m), s = j(n);
					break n;
				}
				m.componentWillUpdate && m.componentWillUpdate(v, m.__s, x), y && m.componentDidUpdate && m.__h.push(function() {
					m.componentDidUpdate(h, g, _);
				});
			} else y && !N.getDerivedStateFromProps && m.componentWillMount && m.componentWillMount(), y && m.componentDidMount && m.__h.push(m.componentDidMount);
			m.context = x, m.props = v, m.__P = e, m.__g &= -5, S = f.__r, C = y ? 25 : 0;
			do
				m.__g &= -9, S && S(t), u = m.render(m.props, m.state = m.__s, m.context);
			while (8 & m.__g && ++C < 25);
			y && (te.push.apply(m.__h, m.__k), m.__k = []), m.state = m.__s, m.getChildContext && (r = E({}, r, m.getChildContext())), y && n.__c && m.getSnapshotBeforeUpdate && (_ = m.getSnapshotBeforeUpdate(h, g)), w = u && u.type === A && u.key == null ? u.props.children : u, v.__P && (u = s, i = (e = v.__P).namespaceURI, c = a = null, n.props && n.props.__P != e && (n.__k.some(function(e) {
				e && ye(e, e);
			}), n.__k = null), s = n.__k ? j(n, 0) : null), s = oe(e, ne(w) ? w : [w], t, n, r, i, a, o, s, c, l), v.__P && (t.__e = null, s = u), t.__u &= -161, d && d.some(D), m.__h.length && o.push(m), 1 & m.__g && (m.__g &= -4);
		} catch (e) {
			if (o.length = p, t.__v = null, c || a) {
				if (e && e.then) {
					if (t.__u |= 128 | c, a) {
						for (~(k = a.indexOf(s || void 0)) || (k = a.length); (M = a[k - 1]) && M.nodeType == 8;) k--;
						for (; k < a.length; k++) if (M = a[k]) {
							if (a[k] = null, T) {
								if (M == O) break;
							} else {
								if (M.nodeType != 8) break;
								M.data.startsWith("$s") && (O = me(T = M));
							}
						}
					}
					if (!T) {
						for (; s && s.nodeType == 8 && s.nextSibling;) s = s.nextSibling;
						T = s;
					}
					(u = me(T = t.__c.__z || (t.__c.__z = T))) ? (t.__e = T, s = u) : t.__e = s, s &&= s.nextSibling;
				} else a && a.some(D);
			} else t.__e = n.__e;
			t.__k ||= n.__k || [], e && e.then || he(t), f.__e(e, t, n);
		}
	} else s = t.__e = _e(n.__e, t, n, r, i, a, o, c, l, e);
	return (u = f.diffed) && u(t), s;
}
function me(e, t) {
	if (e && e.nodeType == 8 && e.data.startsWith("$s")) for (var n = 1; e = e.nextSibling;) {
		if (e.nodeType == 8) {
			if (e.data.startsWith("$s")) n++;
			else if (e.data.startsWith("/$s") && !--n) return e;
		}
		t && t.push(e);
	}
}
function he(e) {
	e && (e.__c && (e.__c.__g |= 4), e.__k && e.__k.some(he));
}
function ge(e, t, n) {
	for (var r = 0; r < n.length;) ve(n[r++], n[r++], n[r++]);
	f.__c && f.__c(t, e), e.some(function(t) {
		try {
			e = t.__h, t.__h = [], e.some(function(e) {
				e.call(t);
			});
		} catch (e) {
			f.__e(e, t.__v);
		}
	});
}
function _e(e, t, n, r, i, a, o, s, c, l) {
	var u, d, p, m, h, g, _, v, y = n.props || C, b = t.props, x = t.type;
	if (x == "svg" ? i = "http://www.w3.org/2000/svg" : x == "math" ? i = "http://www.w3.org/1998/Math/MathML" : i ||= "http://www.w3.org/1999/xhtml", a) {
		for (u = 0; u < a.length; u++) if ((h = a[u]) && (x ? h.localName == x : h.nodeType == 3)) {
			e = h, a[u] = null;
			break;
		}
	}
	if (!e) {
		if (v = l.ownerDocument || document, !x) return v.createTextNode(b);
		e = v.createElementNS(i, x, b.is ? b : l), s &&= (f.__m && f.__m(t, a), !1), a = null;
	}
	if (x) {
		if (l = x == "template" && e.content || e, a = x == "textarea" && b.defaultValue != null ? null : a && T.call(l.childNodes), !s && a) for (y = {}, u = 0; u < e.attributes.length; u++) y[(h = e.attributes[u]).name] = h.value;
		for (u in y) h = y[u], u == "dangerouslySetInnerHTML" ? p = h : u == "children" || u in b || u == "value" && "defaultValue" in b || u == "checked" && "defaultChecked" in b || de(e, u, null, h, i);
		for (u in b) h = b[u], u == "children" ? m = h : u == "dangerouslySetInnerHTML" ? d = h : u == "value" ? g = h : u == "checked" ? _ = h : s && typeof h != "function" || y[u] === h || de(e, u, h, y[u], i);
		d ? (s || p && (d.__html == p.__html || d.__html == e.innerHTML) || (e.innerHTML = d.__html), t.__k = []) : (p && (e.textContent = ""), (x == "foreignObject" || i == "http://www.w3.org/1998/Math/MathML" && w.test(x)) && (i = "http://www.w3.org/1999/xhtml"), oe(l, ne(m) ? m : [m], t, n, r, i, a, o, a ? a[0] : n.__k && j(n, 0), s, c), a && a.some(D)), s && x != "textarea" || (u = "value", x == "progress" && g == null ? e.removeAttribute(u) : g == null || g === e[u] && (x != "progress" || g) || de(e, u, g, y[u], i), u = "checked", _ != null && _ != e[u] && de(e, u, _, y[u], i));
	} else y === b || s && e.data == b || (e.data = b);
	return e;
}
function ve(e, t, n, r) {
	try {
		typeof e == "function" ? t ? t.__x = e(t) || 1 : (r &&= r.__c || r.__e) && (t = r.__x) && (r.__x = null, typeof t == "function" ? t() : e(null)) : e.current = t;
	} catch (e) {
		f.__e(e, n);
	}
}
function ye(e, t, n) {
	var r, i, a, o;
	if (f.unmount && f.unmount(e), !(r = e.ref) || r.current && r.current != e.__e || ve(r, null, t, e), r = e.__c) {
		if (r.componentWillUnmount) try {
			r.componentWillUnmount();
		} catch (e) {
			f.__e(e, t);
		}
		r.__P = r.__n = null;
	}
	if (r = e.__k) for (o = 0; o < r.length; o++) r[o] && ye(r[o], t, typeof e.type != "function" || n && !e.props.__P);
	!n && (r = e.__c) && (r = r.__z) && (i = me(r, a = [])) && (r == e.__e && a.some(D), D(i), D(r)), n || D(e.__e), e.__e = e.__c = e.__ = null;
}
function be(e, t, n) {
	return this.constructor(e, n);
}
function xe(e, t) {
	var n, r, i, a;
	f.__ && f.__(e, t), t.nodeType == 9 && (t = t.documentElement), r = (n = e && 32 & e.__u) ? null : t.__k, t.__k = k(A, { children: [e] }), i = [], a = [], pe(t, t.__k, r || C, C, t.namespaceURI, r ? null : t.firstChild ? T.call(t.childNodes) : null, i, r ? r.__e : t.firstChild, n, a), ge(i, t.__k, a), t.__k.props.children = null;
}
function Se(e) {
	function t(e) {
		var n, r;
		return this.getChildContext || (n = /* @__PURE__ */ new Set(), (r = {})[t.__c] = this, this.getChildContext = function() {
			return r;
		}, this.shouldComponentUpdate = function(e) {
			this.props.value != e.value && n.forEach(function(e) {
				e.__g |= 4, ie(e);
			});
		}, this.sub = function(e) {
			n.add(e);
			var t = e.componentWillUnmount;
			e.componentWillUnmount = function() {
				n.delete(e), t && t.call(e);
			};
		}), e.children;
	}
	return t.__c = "__cC" + S++, t.__ = e, t.Provider = (t.Consumer = function(e, t) {
		return e.children(t);
	}).contextType = t, t;
}
f = { __e: function(e, t, n, r) {
	for (var i, a, o; t = t.__;) if ((i = t.__c) && !(1 & i.__g)) {
		i.__g |= 4;
		try {
			if ((o = (a = i.constructor) && a.getDerivedStateFromError) && i.setState(a.getDerivedStateFromError(e)), i.componentDidCatch && (i.componentDidCatch(e, r || {}), o = 1), o && 8 & i.__g) return void (i.__g |= 2);
		} catch (t) {
			e = t;
		}
	}
	throw g = 0, e;
} }, p = 0, re.prototype.setState = function(e, t) {
	var n = this.__s;
	n && n != this.state || (n = this.__s = E({}, this.state)), typeof e == "function" && (e = e(E({}, n), this.props)), e && (E(n, e), this.__v && (t && this.__k.push(t), ie(this)));
}, re.prototype.forceUpdate = function(e) {
	this.__v && (this.__g |= 4, e && this.__h.push(e), ie(this));
}, re.prototype.render = A, m = [], g = 0, _ = function(e, t) {
	return e.__v.__b - t.__v.__b;
}, v = Symbol(), y = /(PointerCapture)$|Capture$/i, b = 0, x = {}, S = 0;
// src/problem.ts
var P = class e extends Error {
	constructor(e, t, n, r = !1) {
		super(`Expected ${e}; got ${t}. ${Ce(n)}.`), this.expected = e, this.got = t, this.hint = n, this.gone = r;
	}
	static of(t) {
		if (t instanceof e) return t;
		let n = t instanceof Error ? t.message : String(t);
		return new e("an answer", `an error of the page (${n})`, "load the page again");
	}
	static read(t) {
		if (typeof t != "object" || !t) return null;
		let { expected: n, got: r, hint: i } = t;
		return [
			n,
			r,
			i
		].every((e) => typeof e == "string") ? new e(n, r, i) : null;
	}
};
function Ce(e) {
	return e.charAt(0).toUpperCase() + e.slice(1);
}
// src/matrix.ts
function we(e, t) {
	let n = e.rows * e.keys, r = e.levels.subarray(t * n, (t + 1) * n), i = Te(e, e.scales[t] ?? 0), a = new Float32Array(n);
	for (let e = 0; e < n; e++) a[e] = i[r[e] ?? 0] ?? 0;
	return {
		rows: e.rows,
		columns: e.keys,
		values: a
	};
}
function Te({ most: e, power: t }, n) {
	let r = new Float32Array(e + 2);
	for (let i = 0; i <= e; i++) {
		let a = i / e;
		r[i] = n * (t === 2 ? a * a : a);
	}
	return r[e + 1] = NaN, r;
}
function Ee(e) {
	let t = e.rows * e.keys, n = new Float32Array(t).fill(NaN);
	for (let r = 0; r < e.heads; r++) {
		let i = we(e, r).values;
		for (let r = 0; r < t; r++) {
			let t = i[r] ?? NaN;
			if (Number.isNaN(t)) continue;
			let a = n[r] ?? NaN;
			n[r] = (Number.isNaN(a) ? 0 : a) + t / e.heads;
		}
	}
	return {
		rows: e.rows,
		columns: e.keys,
		values: n
	};
}
function De(e, t, n) {
	let [r, i] = [t.to - t.from, n.to - n.from];
	if (r === e.rows && i === e.columns) return e;
	let a = new Float32Array(r * i);
	for (let o = 0; o < r; o++) {
		let r = (t.from + o) * e.columns + n.from;
		a.set(e.values.subarray(r, r + i), o * i);
	}
	return {
		rows: r,
		columns: i,
		values: a
	};
}
function Oe(e, t, n) {
	let r = e.values[t * e.columns + n] ?? 0;
	return Number.isNaN(r) ? 0 : r;
}
function ke(e, t, n) {
	return Number.isNaN(e.values[t * e.columns + n] ?? 0);
}
function Ae(e, t) {
	let { columns: n, values: r } = e, i = Array(n);
	for (let e = 0; e < n; e++) {
		let a = r[t * n + e] ?? 0;
		i[e] = Number.isNaN(a) ? 0 : a;
	}
	return i;
}
function je(e, t) {
	return Array.from({ length: e.rows }, (n, r) => Oe(e, r, t));
}
function Me(e) {
	return e.values.reduce((e, t) => t > e ? t : e, 0);
}
function Ne(e, t) {
	let n = [], r = -Infinity;
	for (let i = 0; i < e.length; i++) {
		let a = e[i] ?? 0;
		if (a <= r) continue;
		let o = n.findIndex((t) => a > (e[t] ?? 0));
		n.splice(o < 0 ? n.length : o, 0, i), n.length > t && n.pop(), n.length === t && (r = e[n[t - 1] ?? 0] ?? 0);
	}
	return n;
}
function Pe(e) {
	return e.map((e, t) => t).sort((t, n) => (e[n] ?? 0) - (e[t] ?? 0) || t - n);
}
// src/share.ts
function F(e) {
	return e === 0 ? "0 %" : e < .01 ? "<1 %" : `${Math.round(e * 100)} %`;
}
function Fe(e) {
	return e < .01 ? "" : String(Math.round(e * 100));
}
function I(e) {
	return e === 0 ? "0 %" : e < .001 ? "<0.1 %" : `${(e * 100).toFixed(1)} %`;
}
// src/scale.ts
var Ie = [
	["root", "0–100 %, by the root"],
	["absolute", "0–100 %"],
	["map", "up to the largest of the map"],
	["row", "up to the largest of each row"],
	["uniform", "times the even share, 1/n"]
];
function Le(e, t, n) {
	if (e === "root") return (e) => Math.sqrt(Math.min(e, 1));
	if (e === "absolute") return (e) => Math.min(e, 1);
	if (e === "uniform") return (e) => Math.sqrt(Math.min(e * n, 16) / 16);
	if (e === "map") {
		let e = Me(t);
		return (t) => e > 0 ? t / e : 0;
	}
	let r = Re(t);
	return (e, t) => (r[t] ?? 0) > 0 ? e / (r[t] ?? 1) : 0;
}
function Re({ rows: e, columns: t, values: n }) {
	let r = new Float32Array(e);
	for (let e = 0; e < n.length; e++) {
		let i = Math.floor(e / t), a = n[e] ?? 0;
		a > (r[i] ?? 0) && (r[i] = a);
	}
	return r;
}
function ze(e, t) {
	let n = (e, t) => ({
		share: e,
		text: t
	});
	return e === "root" ? [
		0,
		.05,
		.25,
		.5,
		1
	].map((e) => n(Math.sqrt(e), F(e))) : e === "absolute" ? [
		0,
		.25,
		.5,
		.75,
		1
	].map((e) => n(e, F(e))) : e === "map" ? [n(0, "0 %"), n(1, `${F(t)}, the largest here`)] : e === "row" ? [n(0, "0 %"), n(1, "the largest of its row")] : [
		0,
		1,
		4,
		16
	].map((e) => n(Math.sqrt(e / 16), `${e} ×`));
}
// src/mechanism.ts
function Be({ answer: e, sheet: t, layer: n, head: r, pinned: i, pointed: a }) {
	let o = e?.layers[n];
	if (t === null || t.coarse || t.layer !== n || o === void 0) return null;
	let s = o.heads === 1 ? 0 : t.head ?? r;
	if (s === null) return null;
	let { rows: c, keys: l } = t.excerpt, u = i ?? a, d = u?.side !== "source", f = (d ? u?.index : u.partner) ?? 0, p = i === null ? void 0 : d ? u?.partner : u.index;
	return {
		layer: n,
		head: s,
		row: f + c.from,
		key: p === void 0 ? null : p + l.from
	};
}
function Ve(e) {
	return 2 ** ((e - 40) / 10);
}
function He(e) {
	return Math.min(Math.max(Math.round(40 + 10 * Math.log2(e)), 0), 80);
}
function Ue(e, t, n) {
	let { keys: r, softcap: i, scale: a, left: o } = e, s = r.score.map((e, n) => {
		if (t === 1) return e;
		let o = r.product[n];
		if (o == null) return null;
		let s = o * a * t;
		return (i === null ? s : i * Math.tanh(s / i)) + (r.bias?.[n] ?? 0);
	}), c = (e) => (!n || r.hidden[e] === "") && s[e] != null, l = t === 1 && o.log_sum !== null ? [o.log_sum] : [], u = [...s.filter((e, t) => e !== null && c(t)), ...l], d = u.reduce((e, t) => Math.max(e, t), -Infinity), f = u.reduce((e, t) => e + Math.exp(t - d), 0), [p, m] = [0, 0];
	return {
		lines: s.map((e, t) => {
			let i = e !== null && c(t) ? Math.exp(e - d) / f : 0;
			m += +!!c(t), i > 0 && (p -= i * Math.log(i));
			let a = n ? r.hidden[t] ?? "" : "", [o = 0, s = null, l = null] = [
				r.index[t],
				r.product[t],
				r.bias?.[t]
			];
			return {
				key: o,
				product: s,
				bias: l,
				score: e,
				weight: i,
				hidden: a
			};
		}),
		entropy: p,
		most: Math.log(Math.max(m, 1)),
		sum: d + Math.log(f)
	};
}
function We({ keys: e, shown: t, left: n }) {
	let r = new Set(t), i = e.index.flatMap((t, n) => r.has(t) ? [] : [e.hidden[n] === ""]), a = i.filter((e) => e).length;
	return {
		seen: n.seen + a,
		hidden: n.hidden + i.length - a
	};
}
function Ge({ query: e, energy: t }, n) {
	return e.map((e, r) => {
		let i = n[r] ?? 0;
		return t === null ? (e ?? 0) * i : (t[r] ?? 0) * Math.tanh((e ?? 0) + i);
	});
}
function L(e) {
	if (e === null) return "–";
	let t = Math.abs(e);
	return (t >= 1e5 ? e.toExponential(1).replace("+", "") : e.toFixed(t >= 100 ? 1 : t >= .1 || t === 0 ? 2 : 3)).replace("-", "−");
}
function Ke(e) {
	return String(Number(e.toPrecision(3)));
}
function qe(e, t) {
	return Math.abs(e * Math.sqrt(t) - 1) < 1e-4;
}
var Je = {
	scaled: ["Scaled dot product", "q · k"],
	dot: ["Luong’s dot", "q · k"],
	general: ["Luong’s general", "q · W k"],
	additive: ["Additive", "v · tanh(W q + U k)"],
	concat: ["Luong’s concat", "v · tanh(W₁ q + W₂ k)"]
};
function Ye({ form: e }) {
	return Je[e];
}
function Xe(e) {
	let [, t] = Ye(e), n = e.scale === 1 ? t : `${Ke(e.scale)} × ${t}`;
	return `score = ${e.softcap === null ? n : `${Ke(e.softcap)} × tanh(${n} / ${Ke(e.softcap)})`}${e.keys.bias === null ? "" : " + bias"}`;
}
var Ze = {
	order: "sentence",
	scale: "root",
	statistic: null,
	sorted: !1,
	least: 0,
	selected: [],
	tab: null,
	side: "target",
	joined: !1,
	threshold: 5,
	apart: !1,
	output: null,
	weight: 0,
	erased: null,
	factor: 40,
	unmasked: !1,
	forced: [],
	beside: null
}, Qe = {
	text: null,
	row: null,
	layer: null,
	head: null,
	view: null,
	pinned: null,
	...Ze
};
function $e(e) {
	let t = Object.keys(Ze);
	return Object.fromEntries(t.map((t) => [t, e[t]]));
}
function et(e) {
	let t = [], n = 0, [r, i] = [nt(e), nt(Qe)];
	for (let [e, a, , o = String] of rt) {
		let s = (t) => t[e] === null ? null : String(o(t[e])), c = s(r);
		c !== null && c !== s(i) && t.push(`${a}=${encodeURIComponent(c)}`), e === "forced" && (n = t.length);
	}
	return t.length > n && t.splice(n, 0, "v=1"), t.length > 0 ? `#${t.join("&")}` : "";
}
function tt(e) {
	let t = /* @__PURE__ */ new Map();
	for (let n of e.replace(/^#/, "").split("&").filter((e) => e !== "")) {
		let [e = "", ...r] = n.split("=");
		if (!(e === "v" || rt.some(([, t]) => t === e)) || t.has(e)) throw ht(n);
		t.set(e, mt(r.join("="), n));
	}
	if (t.has("v") && t.get("v") !== "1") throw ht(`v=${t.get("v")}`);
	let n = { ...nt(Qe) };
	for (let [e, r, i] of rt) {
		let a = t.get(r);
		if (a === void 0) continue;
		let o = i(a);
		if (o === null) throw ht(`${r}=${a}`);
		n[e] = o;
	}
	let { rows: r, keys: i, text: a, ...o } = n;
	if (r === null != (i === null)) throw ht("one of q and k alone");
	return {
		...o,
		text: a || null,
		view: r !== null && i !== null ? {
			rows: r,
			keys: i
		} : null
	};
}
function nt({ view: e, ...t }) {
	return {
		...t,
		rows: e && e.rows,
		keys: e && e.keys
	};
}
var rt = [
	[
		"text",
		"text",
		String
	],
	[
		"forced",
		"fp",
		ct,
		(e) => e.map((e) => e.toString(36)).join(".")
	],
	[
		"row",
		"row",
		dt
	],
	[
		"layer",
		"l",
		dt
	],
	[
		"head",
		"h",
		(e) => e === "mean" ? e : dt(e)
	],
	[
		"rows",
		"q",
		ut,
		lt
	],
	[
		"keys",
		"k",
		ut,
		lt
	],
	[
		"pinned",
		"p",
		pt,
		ft
	],
	[
		"order",
		"o",
		(e) => e === "weight" ? e : null
	],
	[
		"scale",
		"s",
		(e) => Ie.find(([t]) => t === e)?.[0] ?? null
	],
	[
		"statistic",
		"m",
		(e) => /^[a-z_]{1,40}$/.test(e) ? e : null
	],
	[
		"sorted",
		"sort",
		it,
		Number
	],
	[
		"least",
		"mf",
		at
	],
	[
		"selected",
		"sel",
		st,
		(e) => e.map(({ layer: e, head: t }) => `${e}.${t}`).join("_")
	],
	[
		"tab",
		"tab",
		(e) => /^[a-z]{1,20}$/.test(e) ? e : null
	],
	[
		"side",
		"d",
		(e) => e === "s" ? "source" : null,
		(e) => e.slice(0, 1)
	],
	[
		"joined",
		"w",
		it,
		Number
	],
	[
		"threshold",
		"t",
		at
	],
	[
		"apart",
		"x",
		it,
		Number
	],
	[
		"output",
		"out",
		dt
	],
	[
		"weight",
		"wt",
		at
	],
	[
		"erased",
		"er",
		dt
	],
	[
		"factor",
		"f",
		(e) => ot(80, e)
	],
	[
		"unmasked",
		"u",
		it,
		Number
	],
	[
		"beside",
		"b",
		dt
	]
];
function it(e) {
	return e === "1" || null;
}
function at(e) {
	return ot(100, e);
}
function ot(e, t) {
	let n = dt(t);
	return n !== null && n <= e ? n : null;
}
function st(e) {
	let t = e.split("_").map((e) => {
		let t = /^(\d{1,9})\.(\d{1,9})$/.exec(e);
		return t === null ? null : {
			layer: Number(t[1]),
			head: Number(t[2])
		};
	});
	return t.length < 6 && t.every((e) => e !== null) ? t : null;
}
function ct(e) {
	return /^[0-9a-z]{1,6}(\.[0-9a-z]{1,6})*$/.test(e) ? e.split(".").map((e) => parseInt(e, 36)) : null;
}
function lt({ from: e, to: t }) {
	return `${e}-${t - 1}`;
}
function ut(e) {
	let t = /^(\d{1,9})-(\d{1,9})$/.exec(e);
	if (t === null) return null;
	let [n, r] = [Number(t[1]), Number(t[2])];
	return n <= r ? {
		from: n,
		to: r + 1
	} : null;
}
function dt(e) {
	return /^\d{1,9}$/.test(e) ? Number(e) : null;
}
function ft({ side: e, index: t, partner: n }) {
	return `${e === "target" ? "t" : "s"}${t}${n === void 0 ? "" : `.${n}`}`;
}
function pt(e) {
	let t = /^([ts])(\d{1,9})(?:\.(\d{1,9}))?$/.exec(e);
	if (t === null) return null;
	let n = {
		side: t[1] === "t" ? "target" : "source",
		index: Number(t[2])
	};
	return t[3] === void 0 ? n : {
		...n,
		partner: Number(t[3])
	};
}
function mt(e, t) {
	try {
		return decodeURIComponent(e);
	} catch {
		throw ht(t);
	}
}
function ht(e) {
	return new P("a whole link to this page", `a damaged one (${e.length > 60 ? `${e.slice(0, 59)}…` : e})`, "ask for the link again");
}
// src/label.ts
var gt = "▁", _t = "Ġ", vt = "##", yt = /* @__PURE__ */ new Map([
	["<pad>", "⟨padding⟩"],
	["<unk>", "⟨unknown⟩"],
	["<s>", "⟨begin⟩"],
	["</s>", "⟨end⟩"]
]), bt = 40, xt = 32;
function St(e, t) {
	return e === t || e.text === t?.text && e.begins === t.begins && e.special === t.special && e.whole === t.whole;
}
function Ct(e) {
	return Ft(e);
}
function wt(e, t, n = 0) {
	if (e.length !== t) return Array.from({ length: t }, (e, t) => Ct(String(n + t)));
	let r = Tt(e), i = e.some((e) => e.startsWith(vt) && e !== vt), a = jt(e.map((e) => At(e, r === _t)));
	return e.map((e, t) => {
		let n = yt.get(e);
		if (n !== void 0) return {
			text: n,
			begins: !0,
			special: !0
		};
		let o = a[t], s = r !== void 0 && e.startsWith(r) ? e.slice(r.length) : e;
		if (o != null) {
			let n = t === 0 || r !== void 0 && e.startsWith(r) || r === void 0;
			return {
				...Lt(r === _t ? o.text.replace(/^ (?=.)/su, "") : o.text, n),
				...o.note
			};
		}
		if (r === void 0) return i ? It(e, t) : Ft(e);
		let c = t === 0 || e.startsWith(r);
		return s === "" ? {
			text: gt,
			begins: c,
			special: !1
		} : Lt(s, c);
	});
}
function Tt(e) {
	let t = (t) => e.some((e) => e.startsWith(t));
	return t(gt) ? gt : t(_t) && Ot(e) ? _t : void 0;
}
var Et = /^[¡-¬®-¿Ģ-Ń]*(?:[!-~ĉĊčĠ]|[Â-ô][¡-¬®-¿Ģ-Ń]+)*[Â-ô]?$/u, Dt = /^<.*>$|^\s*$/su;
function Ot(e) {
	return Et.test(e.filter((e) => !Dt.test(e)).join(""));
}
var kt = /* @__PURE__ */ new Map();
for (let e = 0, t = 256; e < 256; e++) {
	let n = e >= 33 && e <= 126 || e >= 161 && e !== 173;
	kt.set(String.fromCharCode(n ? e : t++), e);
}
function At(e, t) {
	let n = /^<0x([0-9A-Fa-f]{2})>$/.exec(e)?.[1];
	if (n !== void 0) return [parseInt(n, 16)];
	if (!t || Dt.test(e)) return null;
	let r = Array.from(e, (e) => kt.get(e));
	return r.every((e) => e !== void 0) ? r : null;
}
function jt(e) {
	let t = e.map(() => ""), n = e.map(() => !1), r = [], i = [], a = () => {
		for (let e = 0; e < i.length;) {
			let a = r[e] ?? 0, o = Mt(i[e] ?? 0), s = Nt(i.slice(e, e + o));
			if (o === 0 || s === null) {
				t[a] += `⟨${Pt([i[e] ?? 0])}⟩`, e += 1;
				continue;
			}
			let c = r[e + o - 1] ?? a;
			t[a] += c > a ? `${s}…` : s;
			for (let e = a; c > a && e <= c; e++) e > a && (t[e] = "…"), n[e] = !0;
			e += o;
		}
		r.length = i.length = 0;
	};
	return e.forEach((e, t) => {
		if (e === null) return a();
		for (let n of e) i.push(n), r.push(t);
	}), a(), e.map((e, r) => e === null ? null : {
		text: t[r] ?? "",
		note: n[r] ? { whole: `bytes ${Pt(e)} of a character` } : {}
	});
}
function Mt(e) {
	return e < 128 ? 1 : e >= 194 && e < 224 ? 2 : e >= 224 && e < 240 ? 3 : e >= 240 && e < 245 ? 4 : 0;
}
function Nt(e) {
	try {
		return new TextDecoder("utf-8", {
			fatal: !0,
			ignoreBOM: !0
		}).decode(Uint8Array.from(e));
	} catch {
		return null;
	}
}
function Pt(e) {
	return e.map((e) => e.toString(16).toUpperCase().padStart(2, "0")).join(" ");
}
function Ft(e) {
	return Lt(e, !0);
}
function It(e, t) {
	let n = e.startsWith(vt) && e !== vt;
	return Lt(n ? e.slice(2) : e, t === 0 || !n);
}
function Lt(e, t) {
	let n = Ht(e), r = Array.from(n.slice(0, 160));
	return r.length <= bt ? {
		text: n,
		begins: t,
		special: !1
	} : {
		text: `${r.slice(0, xt).join("")}…`,
		begins: t,
		special: !1,
		whole: n
	};
}
var Rt = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;
function zt(e) {
	let t = e.filter((e) => !e.special).map((e) => e.text), n = /\p{L}/u.exec(t.join(" "))?.[0] ?? "";
	return Rt.test(n) ? "rtl" : "ltr";
}
function R(e) {
	return `\u2068${e}\u2069`;
}
var Bt = /* @__PURE__ */ new Map([
	["\0", "NUL"],
	["	", "tab"],
	["\n", "newline"],
	["\v", "vertical tab"],
	["\f", "form feed"],
	["\r", "return"],
	["\x1B", "escape"],
	["", "delete"],
	["\xA0", "no-break space"],
	["­", "soft hyphen"],
	["؜", "Arabic letter mark"],
	["​", "zero-width space"],
	["‌", "zero-width non-joiner"],
	["‍", "zero-width joiner"],
	["‎", "left-to-right mark"],
	["‏", "right-to-left mark"],
	["\u2028", "line separator"],
	["\u2029", "paragraph separator"],
	["‪", "left-to-right embedding"],
	["‫", "right-to-left embedding"],
	["‬", "end of direction"],
	["‭", "left-to-right override"],
	["‮", "right-to-left override"],
	["⁠", "word joiner"],
	["⁦", "left-to-right isolate"],
	["⁧", "right-to-left isolate"],
	["⁨", "isolate"],
	["⁩", "end of isolate"],
	["　", "wide space"],
	["﻿", "byte order mark"]
]), Vt = /[\p{Cc}\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]|^[\u200c\u200d]+$|^[\u00a0\u3000]$/gu;
function Ht(e) {
	let t = e.replace(Vt, (e) => Array.from(e, (e) => `⟨${Bt.get(e) ?? Ut(e)}⟩`).join(""));
	return t.trim() === "" ? "␣" : t;
}
function Ut(e) {
	return `U+${(e.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
}
// src/joining.ts
var Wt = "Pieces joined to words: over the pieces of a word that is looked at the weights are summed, over those of a word that looks their mean is taken.", Gt = /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u, Kt = /^…/u;
function qt(e) {
	let t = [];
	return e.forEach((n, r) => {
		let i = t.at(-1), a = n.begins || n.special || Gt.test(n.text), o = e[r - 1]?.special === !0;
		i === void 0 || o || a && !Kt.test(n.text) ? t.push({
			from: r,
			to: r + 1
		}) : i.to = r + 1;
	}), t;
}
function Jt(e) {
	return Array.from({ length: e }, (e, t) => ({
		from: t,
		to: t + 1
	}));
}
function Yt(e, t) {
	return t.map(({ from: t, to: n }) => {
		let r = e.slice(t, n), [i] = r;
		return i !== void 0 && r.length === 1 ? i : {
			text: r.map((e) => e.text).join("").replace(/…{2,}/gu, ""),
			begins: !0,
			special: i?.special ?? !1
		};
	});
}
function Xt(e, t, n) {
	let r = new Float32Array(t.length * n.length), i = Array.from({ length: e.rows }, (t, n) => Zt(e, n));
	return t.forEach((t, a) => {
		let o = i.slice(t.from, t.to).filter(Boolean).length;
		n.forEach((i, s) => {
			let [c, l] = [0, 0];
			for (let n = t.from; n < t.to; n++) for (let t = i.from; t < i.to; t++) {
				let r = e.values[n * e.columns + t] ?? NaN;
				Number.isNaN(r) || ([c, l] = [c + r, l + 1]);
			}
			r[a * n.length + s] = l === 0 ? NaN : c / Math.max(o, 1);
		});
	}), {
		rows: t.length,
		columns: n.length,
		values: r
	};
}
function Zt({ values: e, columns: t }, n) {
	for (let r = 0; r < t; r++) if (!Number.isNaN(e[n * t + r] ?? NaN)) return !0;
	return !1;
}
function Qt(e, t) {
	let [n, r] = [0, e.length - 1];
	for (; n < r;) {
		let i = n + r + 1 >> 1;
		(e[i]?.from ?? 0) <= t ? n = i : r = i - 1;
	}
	return n;
}
// src/tile.ts
var $t = 1414288449, en = 2, tn = 28, nn = 1;
async function rn(e) {
	if (e.byteLength < tn) throw z("its header is cut off");
	let t = new DataView(e);
	if (t.getUint32(0, !0) !== $t) throw z("it does not begin with ATLT");
	if (t.getUint16(4, !0) !== en) throw z(`its version is ${t.getUint16(4, !0)}, not ${en}`);
	let n = t.getUint8(6), r = t.getUint8(7), [i, a, o] = [
		8,
		12,
		16
	].map((e) => t.getUint32(e, !0)), s = t.getUint32(24, !0);
	if (n !== 8 && n !== 16 || r !== 1 && r !== 2 || s !== 4 * i + i * a * o * n / 8) throw z("its sizes contradict each other");
	let c = await cn(new Uint8Array(e, tn), s), l = new DataView(c.buffer, c.byteOffset, c.byteLength), u = Float32Array.from({ length: i }, (e, t) => l.getFloat32(4 * t, !0));
	if (!u.every(Number.isFinite)) throw z("a scale of it is no number");
	let d = c.subarray(4 * i);
	return {
		heads: i,
		rows: a,
		keys: o,
		power: r,
		most: 2 ** n - 2,
		pyramidLevel: t.getUint16(20, !0),
		sampled: (t.getUint16(22, !0) & nn) !== 0,
		scales: u,
		levels: n === 8 ? d : dn(d)
	};
}
function an(e, t) {
	let n = e.rows * e.keys;
	return {
		...e,
		heads: 1,
		scales: e.scales.slice(t, t + 1),
		levels: e.levels.subarray(t * n, (t + 1) * n)
	};
}
var on = 1330402369;
async function sn(e) {
	let t = new DataView(e);
	if (e.byteLength < 8 || t.getUint32(0, !0) !== on) throw z("it does not begin with ATLO");
	if (t.getUint16(4, !0) !== 1) throw z("its version is not 1");
	let n = t.getUint16(6, !0), r = 8 + 4 * n;
	if (e.byteLength < r) throw z("its header is cut off");
	let i = Array.from({ length: n }, (n, i) => {
		let a = r;
		return r += t.getUint32(8 + 4 * i, !0), e.slice(a, r);
	});
	if (r !== e.byteLength) throw z("its sizes contradict each other");
	return Promise.all(i.map(rn));
}
async function cn(e, t) {
	let n = new Uint8Array(t), r = 0, { readable: i, writable: a } = new DecompressionStream("deflate"), o = i.getReader();
	un(a.getWriter(), e).catch(() => void 0);
	try {
		for (;;) {
			let { done: e, value: i } = await o.read();
			if (e) break;
			if (r + i.length > t) throw z("it holds more than it says");
			n.set(i, r), r += i.length;
		}
	} catch (e) {
		throw o.cancel().catch(() => void 0), e instanceof P ? e : z("it does not inflate");
	}
	if (r !== t) throw z("it holds less than it says");
	return n;
}
var ln = 65536;
async function un(e, t) {
	for (let n = 0; n < t.length; n += ln) await e.write(t.subarray(n, n + ln));
	await e.close();
}
function dn(e) {
	let t = new Uint16Array(e.length / 2);
	for (let n = 0; n < t.length; n++) t[n] = (e[2 * n] ?? 0) | (e[2 * n + 1] ?? 0) << 8;
	return t;
}
function z(e) {
	return new P("a whole tile of weights", `a damaged one (${e})`, "translate again");
}
// src/sheet.ts
var fn = 1 << 26;
function pn(e, t) {
	return r(t) && e.queries * e.keys > fn;
}
function mn(t, n, r, i) {
	return hn(an(t, i), e(n), r, i);
}
function hn(e, t, n, r) {
	return {
		layer: n,
		excerpt: t,
		tile: e,
		head: r,
		coarse: !0,
		preview: !0,
		rows: Tn(t.rows, e.rows),
		keys: Tn(t.keys, e.keys)
	};
}
var gn = 1 << 22, _n = 1 << 18;
function vn(e, t) {
	return r(t) ? Infinity : e.heads * n(t.rows) * n(t.keys);
}
function yn(e, t) {
	return vn(e, t) <= gn;
}
function bn(e, t) {
	return vn(e, t) > _n;
}
function xn(e, t, n) {
	return (t === null ? !yn(e, n) : bn(e, n)) ? Math.min(t ?? 0, e.heads - 1) : null;
}
async function Sn(e, t, { layer: n, index: i, head: a }, o, s, c = () => e.tokens(t, i, o, s)) {
	let l = r(o), u = xn(n, a, o), d = {
		excerpt: o,
		head: u
	}, [f, p] = await Promise.all([e.tile(t, i, d, s), l ? {
		rows: [],
		keys: []
	} : c()]), m = (e, t, n) => l || f.pyramidLevel > 0 ? Tn(e, n) : wn(t, e);
	return {
		layer: i,
		excerpt: o,
		tile: f,
		head: u,
		coarse: l || f.pyramidLevel > 0,
		preview: !1,
		rows: m(o.rows, p.rows, f.rows),
		keys: m(o.keys, p.keys, f.keys)
	};
}
var Cn = /* @__PURE__ */ new WeakMap();
function wn(e, { from: t, to: n }) {
	let r = Cn.get(e) ?? wt(e, n - t, t);
	return Cn.set(e, r), r;
}
function Tn(e, t = n(e)) {
	return Array.from({ length: t }, (n, r) => {
		let { from: a, to: o } = i(e, r, t);
		return Ct(o - a === 1 ? `${a}` : `${a}–${o - 1}`);
	});
}
// src/ahead.ts
var En = 60, Dn = class {
	constructor(e) {
		this.door = e, this.next = null, this.tokens = null;
	}
	expect(e, t) {
		clearTimeout(this.resting), t === null || this.isNext(e, t) || (this.resting = setTimeout(() => {
			this.next?.request.abort();
			let n = new AbortController(), r = this.asked(e, t, n.signal), i = {
				name: On(e, t),
				request: n,
				sheet: r,
				came: null
			};
			this.next = i, r.then((e) => i.came = e, () => this.next === i && (this.next = null));
		}, En));
	}
	ready(e, t) {
		return this.isNext(e, t)?.came ?? null;
	}
	get(e, t, n) {
		clearTimeout(this.resting);
		let r = this.isNext(e, t);
		return r === null ? this.asked(e, t, n) : (this.next = null, n.addEventListener("abort", () => r.request.abort()), r.sheet);
	}
	stop() {
		clearTimeout(this.resting), this.next?.request.abort(), this.next = this.tokens = null;
	}
	isNext(e, t) {
		return this.next?.name === On(e, t) ? this.next : null;
	}
	async asked(e, { layer: t, head: n, excerpt: r }, i) {
		let { map: a, layers: o } = e, s = o[t];
		if (a === null || s === void 0) return null;
		let c = JSON.stringify([
			a,
			t,
			r
		]);
		return Sn(this.door, a, {
			layer: s,
			index: t,
			head: n
		}, r, i, () => {
			if (this.tokens?.name !== c) {
				let e = this.door.tokens(a, t, r, new AbortController().signal);
				this.tokens = {
					name: c,
					came: e
				}, e.catch(() => this.tokens = null);
			}
			return this.tokens.came;
		});
	}
};
function On({ map: e }, { layer: t, head: n, excerpt: r }) {
	return JSON.stringify([
		e,
		t,
		n,
		r
	]);
}
// node_modules/preact/hooks/dist/hooks.mjs
var kn, B, An, jn, Mn = Object.is, Nn = 0, Pn = [], Fn = [], V = f, In = V.__b, Ln = V.__r, Rn = V.diffed, zn = V.__c, Bn = V.unmount, Vn = V.__;
function Hn(e, t) {
	V.__h && V.__h(B, e, Nn || t), Nn = 0;
	var n = B.__H || (B.__H = {
		__: [],
		__h: []
	});
	return e >= n.__.length && n.__.push({}), n.__[e];
}
function Un(e) {
	return Nn = 1, Wn(tr, e);
}
function Wn(e, t, n) {
	var r = Hn(kn++, 2);
	if (r.t = e, !r.__c && (r.__ = [n ? n(t) : tr(void 0, t), function(e) {
		var t = (r.__N || r.__)[0], n = r.t(t, e);
		Mn(t, n) || (r.__N = [n, r.__[1]], r.__c.setState({}));
	}], r.__c = B, !B.__f)) {
		B.__f = !0;
		var i = B.shouldComponentUpdate;
		B.shouldComponentUpdate = function(e, t, n) {
			var r = this.__H;
			if (!r) return !0;
			var a = !1, o = this.props != e;
			if (r.__.some(function(e) {
				e.__N && (a = !0, Mn(e.__[0], e.__N[0]) || (o = !0));
			}), i) {
				var s = i.call(this, e, t, n);
				return a ? s || o : s;
			}
			return !a || o;
		};
	}
	return r.__;
}
function H(e, t) {
	var n = Hn(kn++, 3);
	!V.__s && er(n.__H, t) && (n.__P = !0, n.__ = e, n.u = t, B.__H.__h.push(n));
}
function Gn(e, t) {
	var n = Hn(kn++, 4);
	!V.__s && er(n.__H, t) && (n.__P = !1, n.__ = e, n.u = t, B.__h.push(n));
}
function U(e) {
	return Nn = 5, Kn(function() {
		return { current: e };
	}, []);
}
function Kn(e, t) {
	var n = Hn(kn++, 7);
	return er(n.__H, t) && (n.__ = e(), n.__H = t), n.__;
}
function qn(e) {
	var t = B.context[e.__c], n = Hn(kn++, 9);
	return n.c = e, t ? (n.__ ?? (n.__ = !0, t.sub(B)), t.props.value) : e.__;
}
function Jn() {
	var e;
	do {
		for (; e = Fn.shift();) try {
			Qn(e);
		} catch (t) {
			V.__e(t, { __: (e = e.__P) && e.__v });
		}
		for (; e = Pn.shift();) {
			var t = e.__H;
			if (e.__P && t) try {
				t.__h.some(Qn), t.__h.some($n), t.__h = [];
			} catch (n) {
				t.__h = [], V.__e(n, e.__v);
			}
		}
	} while (Fn.length);
}
V.__b = function(e) {
	B = null, In && In(e);
}, V.__ = function(e, t) {
	e && t.__k && t.__k.__m && (e.__m = t.__k.__m), Vn && Vn(e, t);
}, V.__r = function(e) {
	Ln && Ln(e), kn = 0;
	var t = (B = e.__c).__H;
	t && (An == B ? B.__h = [] : (t.__h.some(Qn), t.__h.some($n), kn = 0), t.__h = [], t.__.some(function(e) {
		e.__N && (e.__ = e.__N), e.u = e.__N = void 0;
	})), An = B;
}, V.diffed = function(e) {
	Rn && Rn(e);
	var t = e.__c;
	t && t.__H && (t.__H.__h.length && Zn(Pn.push(t)), t.__H.__.some(function(e) {
		e.u && (e.__H = e.u);
	})), An = B = null;
}, V.__c = function(e, t) {
	t.some(function(e) {
		try {
			e.__h.some(Qn), e.__h = e.__h.filter(function(e) {
				return !e.__ || $n(e);
			});
		} catch (t) {
			e.__h = [function() {
				throw t;
			}];
		}
	}), zn && zn(e, t);
}, V.unmount = function(e) {
	Bn && Bn(e);
	var t, n, r = e.__c;
	r && r.__H && (r.__H.__.some(function(r) {
		try {
			if (r.__P && r.__c) {
				if (n === void 0) {
					for (n = e.__; n && (!n.__c || !n.__c.__P);) n = n.__;
					n &&= n.__c;
				}
				r.__P = n, Zn(Fn.push(r));
			} else Qn(r);
		} catch (e) {
			t = e;
		}
	}), r.__H = void 0, t && V.__e(t, r.__v));
};
var Yn = typeof requestAnimationFrame == "function";
function Xn(e) {
	var t, n = function() {
		clearTimeout(r), Yn && cancelAnimationFrame(t), setTimeout(e);
	}, r = setTimeout(n, 35);
	Yn && (t = requestAnimationFrame(n));
}
function Zn(e) {
	e != 1 && jn == V.requestAnimationFrame || ((jn = V.requestAnimationFrame) || Xn)(Jn);
}
function Qn(e) {
	var t = B, n = e.__c;
	typeof n == "function" && (e.__c = void 0, n()), B = t;
}
function $n(e) {
	var t = B;
	e.__c = e.__(), B = t;
}
function er(e, t) {
	return !e || e.length != t.length || t.some(function(t, n) {
		return !Mn(t, e[n]);
	});
}
function tr(e, t) {
	return typeof t == "function" ? t(e) : t;
}
// src/signals.ts
var W = null, nr = /* @__PURE__ */ new Set(), rr = !1, ir = class {
	constructor() {
		this.readers = /* @__PURE__ */ new Set();
	}
	get value() {
		let e = this.peek();
		return W !== null && (W.seen.set(this, e), this.readers.add(W)), e;
	}
}, ar = class {
	constructor(e) {
		this.act = e, this.seen = /* @__PURE__ */ new Map();
	}
	hear() {
		nr.add(this);
	}
	follow(e) {
		let t = W;
		this.end(), W = this;
		try {
			return e();
		} finally {
			W = t;
		}
	}
	get late() {
		for (let [e, t] of this.seen) if (e.peek() !== t) return !0;
		return !1;
	}
	catchUp() {
		this.late && this.act();
	}
	end() {
		for (let e of this.seen.keys()) e.readers.delete(this);
		this.seen.clear();
	}
};
function or(e) {
	for (let t of [...e.readers]) t.hear();
	if (!rr) {
		rr = !0;
		for (let e of nr) {
			nr.delete(e);
			try {
				e.catchUp();
			} catch (e) {
				reportError(e);
			}
		}
		rr = !1;
	}
}
var sr = class extends ir {
	constructor(e) {
		super(), this.held = e;
	}
	get value() {
		return super.value;
	}
	set value(e) {
		e !== this.held && (this.held = e, or(this));
	}
	peek() {
		return this.held;
	}
}, cr = class extends ir {
	constructor(e) {
		super(), this.compute = e, this.known = !1, this.fresh = !1, this.own = new ar(() => void 0), this.own.hear = () => {
			if (this.fresh) {
				this.fresh = !1;
				for (let e of [...this.readers]) e.hear();
			}
		};
	}
	peek() {
		return this.fresh || (this.fresh = !0, (!this.known || this.own.late) && (this.held = this.own.follow(this.compute)), this.known = !0), this.held;
	}
};
function G(e) {
	return new sr(e);
}
function lr(e) {
	return new cr(e);
}
function ur(e) {
	let t = new ar(() => t.follow(e));
	return t.follow(e), () => t.end();
}
function K(e) {
	return Un(() => G(e))[0];
}
function q(e) {
	let t = U(e);
	t.current = e, H(() => ur(() => t.current()), []);
}
function dr() {
	let e = Wn((e, t) => e + 1, 0)[1], t = Un(() => new ar(() => e()))[0];
	H(() => () => t.end(), []), t.end(), W = t;
}
var { diffed: fr } = f;
f.diffed = (e) => {
	W = null, fr?.(e);
};
// src/beside.ts
var pr = class {
	constructor(e) {
		this.door = e, this.found = G(null), this.request = new AbortController(), this.kept = null;
	}
	async follow(e, t, n, { answer: r, row: i, sentence: a, forced: o }) {
		this.request.abort(), this.found.value = null;
		let s = e === null ? void 0 : this.door.other?.(e);
		if (s === void 0 || r === null || t === null || t.preview) return;
		let { signal: c } = this.request = new AbortController();
		try {
			let l = JSON.stringify([
				e,
				i,
				a,
				o
			]);
			if (this.kept?.of !== l) {
				let e = a === null ? s.text(i ?? 0, c) : s.translate(a, o, c);
				this.kept = {
					of: l,
					answer: await e
				};
			}
			let { map: u, layers: d } = this.kept.answer, [f, p] = [r.layers[t.layer], d[t.layer]];
			if (u === null || f?.queries !== p?.queries || f?.keys !== p?.keys) throw new P("the same text and layer there", "a map with other rows and keys", "choose another layer");
			let m = await s.tile(u, t.layer, {
				excerpt: t.excerpt,
				head: n
			}, c);
			c.aborted || (this.found.value = n === null ? Ee(m) : we(m, 0));
		} catch (e) {
			if (c.aborted) return;
			this.kept = null, this.found.value = P.of(e);
		}
	}
	stop() {
		this.request.abort();
	}
}, mr = 3, hr = 12, gr = 44, _r = 22, vr = 30;
function yr(e) {
	let t = /* @__PURE__ */ new Map();
	return e.forEach(({ sheet: e }, n) => {
		t.set(e, [...t.get(e) ?? [], n]);
	}), [...t];
}
function br({ title: e, sheet: t }) {
	let n = /^(?:encoder|decoder|layer) (\d+)(?: · \w+)?$/.exec(e)?.[1];
	return n === void 0 ? e === t ? "" : e : n;
}
function xr(e, t, n, r = null) {
	let i = e.reduce((e, t) => Math.max(e, t.heads), 1), a = r === null ? e.map((e) => Math.min(n(br(e)), t / 3)) : [], o = a.some((e) => e > 0) ? Math.max(vr, Math.max(...a) + 8) : 0, s = Math.floor((t - o) / i) - mr, c = Math.min(Math.max(s, hr), gr), l = c + mr, u = [], d = [], f = 0;
	if (r !== null) {
		let e = Math.max(1, Math.floor((t + mr) / l));
		r.forEach((t, n) => {
			let [r, i] = [Math.floor(n / e), n % e];
			u.push({
				...t,
				x: i * l,
				y: r * l
			});
		}), f = Math.ceil(r.length / e) * l;
	} else for (let [t, n] of yr(e)) {
		t !== "" && (d.push({
			text: t,
			x: 0,
			y: f + _r / 2,
			heading: !0
		}), f += _r);
		for (let t of n) {
			let n = e[t];
			if (n !== void 0) {
				d.push({
					text: br(n),
					x: o - 8,
					y: f + c / 2,
					heading: !1
				});
				for (let e = 0; e < n.heads; e++) u.push({
					layer: t,
					head: e,
					x: o + e * l,
					y: f
				});
				f += l;
			}
		}
		f += 4;
	}
	return {
		size: c,
		width: u.reduce((e, { x: t }) => Math.max(e, t + c), 0) + 2,
		height: Math.max(f, 1),
		thumbnails: u,
		writing: d
	};
}
function Sr({ thumbnails: e, size: t }, n, r) {
	let i = (e, n) => n >= e - mr / 2 && n < e + t + mr / 2;
	return e.find((e) => i(e.x, n) && i(e.y, r)) ?? null;
}
function Cr(e, t) {
	return e?.layer === t?.layer && e?.head === t?.head;
}
function wr({ thumbnails: e }, t, n) {
	let r = e.find((e) => Cr(e, t));
	if (r === void 0 || n === "Home") return e[0] ?? null;
	if (n === "End") return e.at(-1) ?? null;
	let i = e.indexOf(r);
	if (n === "ArrowRight") return e[i + 1] ?? r;
	if (n === "ArrowLeft") return e[i - 1] ?? r;
	let a = n === "ArrowDown", o = e.filter(({ y: e }) => a ? e > r.y : e < r.y).map(({ y: e }) => e);
	if (o.length === 0) return r;
	let s = a ? Math.min(...o) : Math.max(...o);
	return e.filter(({ y: e }) => e === s).reduce((e, t) => Math.abs(t.x - r.x) < Math.abs(e.x - r.x) ? t : e);
}
function Tr(e, t) {
	let n = e.flatMap(({ heads: e }, t) => Array.from({ length: e }, (e, n) => ({
		layer: t,
		head: n
	}))), r = (e) => t(e) ?? -Infinity;
	return n.map((e, t) => ({
		head: e,
		index: t,
		value: r(e)
	})).sort((e, t) => e.value === t.value ? e.index - t.index : t.value - e.value).map(({ head: e }) => e);
}
// src/state.ts
var Er = {
	model: null,
	translating: null,
	reading: !1,
	slow: !1,
	share: null,
	sentence: null,
	answer: null,
	sheet: null,
	view: null,
	overview: null,
	row: null,
	problem: null,
	layer: 0,
	head: null,
	pointed: null,
	pinned: null,
	...Ze,
	chosen: !1
}, Dr = {
	translating: null,
	reading: !1,
	slow: !1,
	share: null,
	problem: null
};
function Or(e, t) {
	return {
		...e,
		...Dr,
		translating: t
	};
}
function kr(e) {
	return {
		...e,
		reading: !0,
		share: null,
		problem: null
	};
}
function Ar(e, t, n, { sheet: r, view: i, overview: a, row: o = null }) {
	let s = r?.layer ?? 0, c = {
		sentence: t,
		row: o,
		answer: n,
		sheet: r,
		view: i,
		overview: a,
		layer: s,
		head: r?.head ?? Gr(e.head, n.layers[s]),
		selected: Wr(e.selected, n),
		output: null,
		erased: null,
		forced: Ze.forced
	};
	return {
		...e,
		...Dr,
		...c,
		pointed: Kr(r, i),
		pinned: null
	};
}
function jr(e, t) {
	return {
		...e,
		...Dr,
		problem: t
	};
}
function Mr(e, t, n, r) {
	let i = n.head ?? Gr(t, e.answer?.layers[n.layer]), a = {
		layer: n.layer,
		head: i
	}, o = Br(e), s = e.answer?.layers[n.layer], c = o?.queries === s?.queries && o?.keys === s?.keys ? e.sheet : null, l = {
		pointed: Qr(e.pointed, c, n) ?? Kr(n, r),
		pinned: Qr(e.pinned, c, n)
	}, u = {
		reading: !1,
		slow: e.slow && e.translating !== null,
		problem: null
	};
	return {
		...e,
		...u,
		...a,
		...l,
		sheet: n,
		view: r
	};
}
function Nr(e, t, n) {
	let { sheet: r, pointed: i } = e, a = {
		...e,
		head: t,
		view: n,
		reading: !1
	};
	if (r === null || r.coarse) return a;
	if (i !== null) {
		let { side: e, index: t } = $r(i, r.excerpt, 1), o = e === "target" ? n.rows : n.keys;
		if (t >= o.from && t < o.to) return a;
	}
	return {
		...a,
		pointed: Kr(r, n)
	};
}
function Pr(e, t) {
	return qr(e.pointed, t) ? e : {
		...e,
		pointed: t
	};
}
function Fr(e, t) {
	return {
		...e,
		pinned: qr(e.pinned, t) ? null : t,
		pointed: t
	};
}
function Ir(e) {
	return e.pinned === null ? e : {
		...e,
		pinned: null
	};
}
function Lr(e) {
	return e.pinned ?? e.pointed;
}
var Rr = /* @__PURE__ */ new WeakMap();
function zr(e, t) {
	if (e === null) return null;
	let { tile: n } = e, r = e.head === null ? t : 0, i = Rr.get(n) ?? /* @__PURE__ */ new Map();
	Rr.set(n, i);
	let a = i.get(r) ?? (r === null ? Ee(n) : we(n, r));
	return i.set(r, a), a;
}
function Br(e) {
	return e.answer?.layers[e.layer] ?? null;
}
function Vr(e, t) {
	return e.sheet === null ? !1 : e.sheet.head === null || e.sheet.head === t;
}
function Hr({ layer: e, head: t, selected: n, sheet: r }) {
	let i = t === null || r === null ? [] : [{
		layer: e,
		head: t
	}];
	return [...i, ...n.filter((e) => !i.some((t) => Cr(e, t)))];
}
function Ur(e, t) {
	let { selected: n, layer: r, head: i } = e;
	if (i !== null && Cr(t, {
		layer: r,
		head: i
	})) return e;
	let a = n.filter((e) => !Cr(e, t));
	return a.length < n.length ? {
		...e,
		selected: a
	} : {
		...e,
		selected: [...n, t].slice(-5)
	};
}
function Wr(e, t) {
	return t === null ? e : e.filter(({ layer: e, head: n }) => n < (t.layers[e]?.heads ?? 0));
}
function Gr(e, t) {
	return e === null || t === void 0 || e >= t.heads ? null : e;
}
function Kr(e, t) {
	return e === null || e.coarse || e.tile.rows === 0 ? null : {
		side: "target",
		index: t === null ? 0 : t.rows.from - e.excerpt.rows.from
	};
}
function qr(e, t) {
	return e?.side === t?.side && e?.index === t?.index && e?.partner === t?.partner;
}
function Jr(t) {
	let { sheet: n, pinned: r, answer: i, view: a } = t, o = n?.excerpt, s = Br(t), c = s === null || a === null || u(a, e(s));
	return {
		text: t.sentence,
		row: t.row,
		layer: i === null || n === null ? null : t.layer,
		head: i === null || n === null ? null : t.head ?? "mean",
		view: c ? null : a,
		pinned: r === null || o === void 0 ? null : $r(r, o, 1),
		...$e(t)
	};
}
function Yr(e, t) {
	let n = e.chosen || t.head !== null;
	return {
		...e,
		...$e(t),
		selected: Wr(t.selected, e.answer),
		chosen: n
	};
}
function Xr(e, t) {
	let { sheet: n } = e;
	if (n === null || n.coarse) return e;
	if (t === null) return {
		...e,
		pinned: null
	};
	let r = $r(t, n.excerpt, -1);
	return Zr(r, n) ? {
		...e,
		pinned: r,
		pointed: r
	} : {
		...e,
		pinned: null
	};
}
function Zr({ side: e, index: t, partner: n = 0 }, { tile: r }) {
	let [i, a] = e === "target" ? [r.rows, r.keys] : [r.keys, r.rows];
	return t >= 0 && t < i && n >= 0 && n < a;
}
function Qr(e, t, n) {
	if (e === null || t === null || t.coarse || n.coarse) return null;
	let r = $r($r(e, t.excerpt, 1), n.excerpt, -1);
	return Zr(r, n) ? r : null;
}
function $r(e, { rows: t, keys: n }, r) {
	let [i, a] = e.side === "target" ? [t.from, n.from] : [n.from, t.from], o = {
		side: e.side,
		index: e.index + r * i
	};
	return e.partner === void 0 ? o : {
		...o,
		partner: e.partner + r * a
	};
}
// src/explorer.ts
var ei = 80, ti = {
	translation: 4e3,
	weights: 500
}, ni = class {
	get whole() {
		return this.current;
	}
	constructor(e, t, n) {
		this.door = e, this.theme = t, this.address = n, this.current = G(Er), this.now = Object.fromEntries(Object.keys(Er).map((e) => [e, lr(() => this.current.value[e])])), this.draft = G(""), this.notice = G(""), this.map = null, this.place = G(null), this.followed = {
			at: -Infinity,
			sheet: null
		}, this.gold = G([]), this.spoken = G(""), this.weights = lr(() => zr(this.now.sheet.value, this.now.head.value)), this.layer = lr(() => this.now.answer.value?.layers[this.now.layer.value] ?? null), this.reading = lr(() => this.read(this.weights.value)), this.heads = lr(() => {
			let [e, t, n, r] = [
				this.now.layer,
				this.now.head,
				this.now.selected,
				this.now.sheet
			];
			return Hr({
				layer: e.value,
				head: t.value,
				selected: n.value,
				sheet: r.value
			});
		}), this.others = G(/* @__PURE__ */ new Map()), this.othersOf = null, this.othersRequest = new AbortController(), this.answerRequest = new AbortController(), this.sheetRequest = new AbortController(), this.openingRow = null, this.pending = null, this.sheets = new Dn(e), this.beside = new pr(e);
		let r = [
			ur(() => this.fetchOthers(this.heads.value, this.now.sheet.value)),
			ur(() => this.followPlace(this.now.pinned.value, this.now.pointed.value, this.now.sheet.value)),
			ur(() => void this.beside.follow(this.now.beside.value, this.now.sheet.value, this.now.head.value, this.state))
		];
		this.stopFetching = () => r.forEach((e) => e());
	}
	get state() {
		return this.current.peek();
	}
	set(e) {
		this.update({
			...this.state,
			...e
		});
	}
	point(e) {
		this.current.value = Pr(this.state, e);
	}
	pin(e) {
		this.update(Fr(this.state, e));
	}
	unpin() {
		this.update(Ir(this.state));
	}
	chooseLayer(e) {
		this.see(e, this.requested.head);
	}
	chooseHead(e) {
		this.see(this.requested.layer, e);
	}
	openText(e) {
		this.open(e);
	}
	view(e, t = Br(this.state)) {
		let { requested: { layer: n, head: r }, state: i } = this, a = i.answer?.layers[n];
		t === Br(i) && this.shows(i.layer, i.head, e) && this.set({ view: e }), a !== void 0 && this.show(n, r, o(e, t, a));
	}
	toggle(e) {
		this.update(Ur(this.state, e));
	}
	matrixOf({ layer: e, head: t }) {
		let n = this.now.sheet.value;
		return n === null ? null : e === n.layer && (n.head === null || n.head === t) ? zr(n, t) : this.others.value.get(`${e} ${t}`) ?? null;
	}
	alike({ layer: e }) {
		let [t, n] = [this.layer.value, this.now.answer.value?.layers[e]];
		return t !== null && t.queries === n?.queries && t.keys === n.keys;
	}
	read(e) {
		let t = this.now.sheet.value;
		if (e === null || t === null) return null;
		let { rows: n, keys: r } = t;
		if (!this.now.joined.value || t.coarse) {
			let [t, i] = [Jt(n.length), Jt(r.length)];
			return {
				matrix: e,
				rows: n,
				keys: r,
				rowSpans: t,
				keySpans: i
			};
		}
		let [i, a] = [qt(n), qt(r)];
		return {
			matrix: Xt(e, i, a),
			rows: Yt(n, i),
			keys: Yt(r, a),
			rowSpans: i,
			keySpans: a
		};
	}
	get kind() {
		return {
			translated: this.now.sentence.value !== null,
			within: this.layer.value?.within ?? !1
		};
	}
	retry() {
		let { model: e, answer: t, row: n, view: r, layer: i, head: a } = this.state;
		e === null || t === null ? this.begin(this.address?.read() ?? "") : e.texts === null && this.draft.peek() !== this.state.sentence ? this.translate(this.draft.peek()) : n !== null && this.state.sheet === null ? this.open(n) : r !== null && this.show(i, a, r), this.set({ problem: null });
	}
	get link() {
		return et(Jr(this.state));
	}
	async begin(e) {
		try {
			let t = await this.door.model();
			this.update({
				...this.state,
				model: t
			});
			let { link: n, problem: r } = ii(e), i = n.text ?? t.facts.example ?? "";
			t.texts === null ? i !== "" && this.draft.peek() === "" && await this.translate(i, n) : await this.open(n.row ?? 0, n), r !== null && this.update(jr(this.state, r));
		} catch (e) {
			this.update(jr(this.state, P.of(e)));
		}
	}
	async follow(e) {
		if (e === et(Jr(this.state))) return;
		let { link: t, problem: n } = ii(e);
		if (n !== null) return this.update(jr(this.state, n), !1);
		let { answer: r, sentence: i, row: a, model: o, forced: c } = this.state;
		if (o?.texts !== null && o !== null) {
			if (t.row !== null && t.row !== a) return this.open(t.row, t);
		} else if (t.text !== null && (t.text !== i || t.forced.join() !== c.join())) return this.translate(t.text, t);
		if (this.update(Yr(this.state, t), !1), r === null) return;
		let l = this.state.overview?.statistics.first ?? {
			layer: 0,
			head: 0
		}, u = Math.min(t.layer ?? l.layer, r.layers.length - 1), d = r.layers[u];
		if (d === void 0) return;
		let f = t.head === "mean" ? null : t.head ?? l.head;
		await this.show(u, f, s(t.view, d), !1), this.update(Xr(this.state, t.pinned), !1);
	}
	async translate(e, t = null) {
		if (this.state.model?.texts || (this.draft.value = e, t === null && e === this.state.translating)) return;
		let n = this.restart();
		if (e.trim() === "") {
			let e = new P("a sentence to translate", "an empty one", "type a few words");
			return this.update(jr(this.state, e));
		}
		this.update(Or(this.state, e)), await this.wait(n, ti.translation, async () => {
			let r = await this.door.translate(e, t?.forced ?? [], n), i = await this.first(r, t, n);
			return (n) => ai(Ar(i.from(n), e, r, i), t);
		}), await this.sharpen(n);
	}
	choose(e) {
		let { sentence: t } = this.state;
		t !== null && this.translate(t, {
			...Jr(this.state),
			forced: e
		});
	}
	async open(e, t = null) {
		let n = this.restart();
		this.openingRow = e, this.update(kr(this.state)), await this.wait(n, ti.weights, async () => {
			let r = await this.door.text(e, n), i = await this.first(r, t, n);
			return (n) => ai(Ar(i.from(n), null, r, {
				...i,
				row: e
			}), t);
		}), n.aborted || (this.openingRow = null), await this.sharpen(n);
	}
	async sharpen(e) {
		let { sheet: t, layer: n, head: r, view: i } = this.state;
		!e.aborted && t?.preview && i !== null && await this.show(n, r, i);
	}
	see(e, t) {
		let { pending: n } = this, r = {
			...this.state,
			chosen: !0
		}, i = e === r.layer && Vr(r, t);
		i ? this.update({
			...r,
			head: t
		}) : this.current.value = r, (n ? n.layer !== e || n.head !== t : !i) && this.show(e, t);
	}
	expect(e) {
		let { answer: t } = this.state, n = t?.layers[e?.layer ?? -1];
		if (t === null || this.openingRow !== null) return;
		let r = n && o(this.state.view, Br(this.state), n);
		e === null || n === void 0 || r === void 0 || pn(n, r) || this.shows(e.layer, e.head, r) ? this.sheets.expect(t, null) : this.sheets.expect(t, {
			...e,
			excerpt: c(r, n)
		});
	}
	get requested() {
		return this.pending ?? this.state;
	}
	async show(e, t, n, r = !0) {
		if (this.openingRow !== null) return this.current.value = {
			...this.state,
			layer: e,
			head: t
		}, this.open(this.openingRow);
		let { answer: i } = this.state, a = i?.layers[e];
		if (i === null || a === void 0) return;
		let { requested: s } = this, l = n ?? o(s.view, i.layers[s.layer] ?? null, a);
		if (this.sheetRequest.abort(), this.pending = null, this.shows(e, t, l)) return this.update(Nr(this.state, t, l), r);
		let u = {
			layer: e,
			head: t,
			excerpt: c(l, a)
		}, d = this.sheets.ready(i, u);
		if (d !== null) return this.update(Mr(this.state, t, d, l), r);
		this.pending = {
			layer: e,
			head: t,
			view: l
		};
		let { signal: f } = this.sheetRequest = new AbortController(), p = pn(a, l) ? ri(this.state.overview, a, e, t) : null, m = this.state.sheet?.layer === e && Vr(this.state, t);
		if (p !== null && !m && this.update(Mr(this.state, t, p, l), r), this.update(kr(this.state), r), i.map !== null && pn(a, l)) {
			let n = {
				excerpt: u.excerpt,
				head: xn(a, t, u.excerpt)
			};
			this.meanwhile(i.map, e, t, l, n, f);
		}
		await this.wait(f, ti.weights, async () => {
			let e = await this.sheets.get(i, u, f);
			return (n) => e === null ? n : Mr(n, t, e, l);
		}, r), f.aborted || (this.pending = null);
	}
	async meanwhile(e, t, n, r, i, a) {
		let { door: o } = this, s = () => a.aborted || !this.state.reading, c = () => null, l = await o.glance?.(e, t, i, a).catch(c) ?? null;
		if (l !== null && !s()) {
			let { reading: e, slow: a } = this.state, o = hn(l, i.excerpt, t, i.head);
			this.current.value = {
				...Mr(this.state, n, o, r),
				reading: e,
				slow: a
			};
		}
		for (;;) {
			if (await new Promise((e) => setTimeout(e, 500)), s()) return;
			let n = await o.progress?.(e, t, i, a).catch(c) ?? null;
			s() || (this.current.value = {
				...this.state,
				share: n
			});
		}
	}
	halt() {
		this.sheetRequest.abort(), this.pending = null, this.update({
			...this.state,
			reading: !1,
			slow: !1,
			share: null
		});
	}
	shows(e, t, n) {
		let { sheet: r } = this.state;
		return r === null || r.layer !== e || !Vr(this.state, t) || r.preview ? !1 : l(r.excerpt, n) && (!r.coarse || u(r.excerpt, n));
	}
	async first(e, t, n) {
		let r = (e) => e;
		if (e.map === null) return {
			sheet: null,
			view: null,
			overview: null,
			from: r
		};
		let [i, a, l] = await Promise.all([
			this.door.overview(e.map, n),
			this.door.statistics(e.map, n),
			this.directions(e, n)
		]), u = {
			tiles: i,
			statistics: a,
			rightToLeft: l
		}, d = e.layers.length - 1, f = this.state.chosen && this.state.layer <= d ? this.state : a.first, p = Math.min(t?.layer ?? f.layer, d), m = t?.head === "mean" ? null : t?.head ?? f.head, h = e.layers[p];
		if (h === void 0) return {
			sheet: null,
			view: null,
			overview: u,
			from: r
		};
		let g = t ? s(t.view, h) : o(this.state.view, Br(this.state), h), _ = (t?.pinned ?? null) !== null && !pn(h, g), v = m === null && yn(h, c(g, h));
		return {
			sheet: (_ || v || !bn(h, c(g, h)) ? null : ri(u, h, p, m)) ?? await this.sheets.get(e, {
				layer: p,
				head: m,
				excerpt: c(g, h)
			}, n),
			view: g,
			overview: u,
			from: (e) => ({
				...e,
				layer: p,
				head: m
			})
		};
	}
	async directions(e, t) {
		let { map: n, layers: r } = e, i = /* @__PURE__ */ new Map();
		r.forEach(({ sheet: e, queries: t, keys: n }, r) => {
			let a = `${t} ${n} ${e}`;
			i.set(a, [...i.get(a) ?? [], r]);
		});
		let a = [...i.values()].map(async (e) => {
			let [i = 0] = e, a = r[i];
			if (n === null || a === void 0 || a.queries === 0) return [];
			let o = {
				from: 0,
				to: Math.min(a.keys, 64)
			}, s = await this.door.tokens(n, i, {
				rows: {
					from: 0,
					to: 1
				},
				keys: o
			}, t);
			return zt(wt(s.keys, s.keys.length)) === "rtl" ? e : [];
		});
		return new Set((await Promise.all(a)).flat());
	}
	async wait(e, t, n, r = !0) {
		let i = setTimeout(() => {
			e.aborted || this.update({
				...this.state,
				slow: !0
			});
		}, t);
		try {
			let t = await n();
			e.aborted || this.update(t(this.state), r);
		} catch (t) {
			e.aborted || this.update(jr(this.state, P.of(t)));
		} finally {
			clearTimeout(i);
		}
	}
	restart() {
		return this.answerRequest.abort(), this.sheetRequest.abort(), this.sheets.stop(), [this.openingRow, this.pending] = [null, null], this.answerRequest = new AbortController(), this.answerRequest.signal;
	}
	pause() {
		this.answerRequest.abort(), this.sheetRequest.abort(), this.othersRequest.abort(), this.beside.stop(), this.sheets.stop();
	}
	stop() {
		this.stopFetching(), clearTimeout(this.following), this.pause();
	}
	update(e, t = !0) {
		e !== this.state && (this.current.value = e, t && e.translating === null && !e.reading && this.address?.write(et(Jr(e))));
	}
	followPlace(e, t, n) {
		let r = () => {
			this.followed = {
				at: performance.now(),
				sheet: n
			};
			let r = e ?? t;
			qr(this.place.peek(), r) || (this.place.value = r);
		};
		clearTimeout(this.following);
		let i = this.followed.at + ei - performance.now();
		e === null && n === this.followed.sheet && i > 0 ? this.following = setTimeout(r, i) : r();
	}
	fetchOthers(e, t) {
		let { answer: n } = this.state, r = {
			map: n?.map ?? null,
			excerpt: t?.excerpt ?? null
		}, { map: i, excerpt: a } = this.othersOf ?? {
			map: null,
			excerpt: null
		};
		if (a !== null && r.excerpt !== null && i === r.map && u(a, r.excerpt) || (this.othersRequest.abort(), this.othersRequest = new AbortController(), this.others.value = /* @__PURE__ */ new Map()), this.othersOf = r, n === null || n.map === null || t === null || t.preview) return;
		let { map: o, layers: s } = n, { signal: c } = this.othersRequest, l = s[t.layer];
		for (let { layer: n, head: r } of e) {
			let e = n === t.layer && (t.head === null || t.head === r), i = s[n], a = l?.queries === i?.queries && l?.keys === i?.keys, u = `${n} ${r}`;
			e || !a || this.others.peek().has(u) || this.door.tile(o, n, {
				excerpt: t.excerpt,
				head: r
			}, c).then((e) => {
				c.aborted || (this.others.value = new Map(this.others.peek()).set(u, we(e, 0)));
			}, (e) => {
				c.aborted || this.update(jr(this.state, P.of(e)));
			});
		}
	}
};
function ri(e, t, n, r) {
	let i = e?.tiles[n];
	return i === void 0 ? null : mn(i, t, n, Math.min(r ?? 0, t.heads - 1));
}
function ii(e) {
	try {
		return {
			link: tt(e),
			problem: null
		};
	} catch (e) {
		return {
			link: Qe,
			problem: P.of(e)
		};
	}
}
function ai(e, t) {
	return t === null ? e : Xr(Yr(e, t), t.pinned);
}
// src/panel.ts
var oi = Se(null), si = oi.Provider;
function J() {
	dr();
	let e = qn(oi);
	if (e === null) throw Error("a panel outside of an explorer");
	return e;
}
// src/parts.tsx
function ci({ said: e }) {
	return /* @__PURE__ */ O("p", {
		class: "problem",
		role: "alert",
		hidden: e === ""
	}, e);
}
function li({ problem: e, doing: t }) {
	return /* @__PURE__ */ O("p", {
		class: e ? "problem" : "hint empty",
		role: e ? "alert" : "status"
	}, e || t);
}
function ui({ name: e, legend: t, options: n, value: r, choose: i }) {
	return /* @__PURE__ */ O("fieldset", {
		class: "switch",
		id: e
	}, /* @__PURE__ */ O("legend", { class: "unseen" }, t), n.map(([t, n]) => /* @__PURE__ */ O("label", { key: t }, /* @__PURE__ */ O("input", {
		type: "radio",
		name: e,
		value: t,
		checked: r === t,
		onChange: () => i(t)
	}), /* @__PURE__ */ O("span", null, n))));
}
function di({ id: e, value: t, options: n, choose: r }) {
	return /* @__PURE__ */ O("select", {
		id: e,
		value: t,
		onChange: (e) => r(e.currentTarget.value)
	}, n.map(([e, t]) => /* @__PURE__ */ O("option", {
		key: e,
		value: e
	}, t)));
}
// src/wording.ts
function fi(e) {
	let t = [];
	return e.name && t.push(e.name), e.source_language && e.target_language && t.push(`${hi(e.source_language)} → ${hi(e.target_language)}`), e.attention === "none" ? t.push("no attention") : e.attention && t.push(`${e.attention} attention`), typeof e.parameters == "number" && t.push(`${gi(e.parameters)} parameters`), typeof e.bleu == "number" && t.push(`validation BLEU ${e.bleu.toFixed(1)}`), t;
}
function pi(e) {
	return typeof e.bleu == "number" ? `BLEU${e.bleu_sentences ? ` on ${e.bleu_sentences} sentences` : ""}: ${e.bleu_signature ?? "signature unknown"}` : "";
}
function mi(e) {
	return e.map === null && e.blank !== "" ? `There is no looking to show: ${e.blank}.` : "";
}
function hi(e) {
	try {
		return new Intl.DisplayNames(["en"], { type: "language" }).of(e) ?? e;
	} catch {
		return e;
	}
}
function gi(e) {
	return e >= 9995e5 ? `${(e / 1e9).toFixed(1)} billion` : e >= 1e6 ? `${(e / 1e6).toFixed(1)} million` : e.toLocaleString("en");
}
function _i(e, t, n, r) {
	let i = Ne(n, 3).filter((e) => (n[e] ?? 0) >= .005).map((e) => `${R(r[e] ?? "")} ${F(n[e] ?? 0)}`), a = e.side === "target" ? "looked at" : "was looked at by";
	return `${R(t)}: ${a} ${i.length > 0 ? i.join(", ") : "nothing in particular"}`;
}
function vi({ translated: e, within: t }) {
	return t ? {
		source: "Looked at",
		target: "Looking"
	} : {
		source: "Source",
		target: e ? "Translation" : "Target"
	};
}
var yi = {
	normalized_entropy: "entropy, as a share of the most",
	max_weight: "largest weight",
	first_weight: "share on the first token",
	last_weight: "share on the last token",
	distance: "distance in tokens",
	self_weight: "share on the token itself",
	previous_weight: "share on the token before",
	next_weight: "share on the token after",
	special_weight: "share on special tokens",
	information: "how much the query decides, in nats"
}, bi = {
	read: [
		"Read",
		"Reading",
		"",
		"Your text"
	],
	continue: [
		"Continue",
		"Writing",
		"Continuation",
		"Your prompt"
	],
	answer: [
		"Answer",
		"Answering",
		"Answer",
		"Your text"
	],
	classify: [
		"Classify",
		"Reading",
		"Label",
		"Your text"
	],
	translate: [
		"Translate",
		"Translating",
		"Translation",
		"Your sentence"
	]
};
function xi(e) {
	let [t, n, r, i] = bi[e ?? "translate"];
	return {
		button: t,
		doing: n,
		result: r,
		field: i
	};
}
function Si({ rows: e, keys: t }) {
	let n = ({ from: e, to: t }) => t - e === 1 ? e.toLocaleString("en") : `${e.toLocaleString("en")}–${(t - 1).toLocaleString("en")}`;
	return `rows ${n(e)} × keys ${n(t)}`;
}
function Ci(e) {
	return yi[e] ?? e;
}
var wi = {
	normalized_entropy: "entropy",
	max_weight: "largest",
	first_weight: "first",
	last_weight: "last",
	self_weight: "itself",
	previous_weight: "before",
	next_weight: "after"
};
function Ti(e) {
	return wi[e] ?? e;
}
function Ei(e, t) {
	return /_weight$|^normalized/.test(e) ? F(t) : t.toFixed(2);
}
function Y({ title: e }, t) {
	return `${e}, ${t === null ? "mean of all heads" : `head ${t}`}`;
}
function Di(e, t, n) {
	return e.side === "target" ? `Where “${R(t)}” looked` : `Which ${Ni(n)}s looked at “${R(t)}”`;
}
function Oi(e, t, n) {
	if (e.side === "target") {
		let e = t.within ? "token" : "source token", r = F(n.reduce((e, t) => e + t, 0));
		return `Of each ${e} here, the share of this ${Ni(t)}’s attention; together ${r}.`;
	}
	return `Of each ${t.translated && !t.within ? "word of the translation" : "token"} here, the share of its own attention that went to this one.`;
}
function ki(e, r = null) {
	if (e === null) return "";
	let [i, a] = r ? [r.rows, r.keys] : [n(e.rows), n(e.keys)], o = (e, n) => Math.ceil(t(e) / n).toLocaleString("en");
	if (r?.sampled) {
		let [t, n] = [o(e.rows, i), o(e.keys, a)];
		return `A sample: of ${t} tokens that look, each cell shows one, and its largest weight of up to ${n}.`;
	}
	return `Each cell shows the largest weight of up to ${o(e.rows, i)} × ${o(e.keys, a)}. Click a cell to see its part of the map closer.`;
}
function Ai({ translating: e, reading: t, slow: n, share: r, model: i }) {
	if (e !== null) {
		let { doing: e } = xi(i?.facts.task);
		return n ? `Still ${e.toLowerCase()}. A long text or a large model takes its time…` : `${e}…`;
	}
	return !t || !n ? "" : r === null ? "Reading the weights. A long map takes its time…" : `Reading the weights: ${F(r)}`;
}
function ji(e, t) {
	return t === "" ? String(e) : `${e}: ${t}`;
}
function Mi(e, t, n, r) {
	let { source: i, target: a } = vi(n), o = `${e} rows (${a.toLowerCase()}), ${t} columns (${i.toLowerCase()})`;
	return r ? `A map of the largest weights: ${o}. The numbers above it show a part of it closer.` : `A map of the weights: ${o}. The rows of words above and the list of numbers beside it say the same.`;
}
function Ni(e) {
	return e.translated && !e.within ? "word" : "token";
}
// src/ask-panel.tsx
function Pi() {
	let e = J().now.model.value;
	return e === null ? /* @__PURE__ */ O("div", { class: "ask" }) : e.texts === null ? /* @__PURE__ */ O(Fi, null) : /* @__PURE__ */ O(Ii, { texts: e.texts });
}
function Fi() {
	let e = J(), t = U(null), n = U(null), r = e.now.model.value?.facts, i = e.draft.value, a = xi(r?.task), o = e.now.translating.value !== null;
	return H(() => {
		let e = t.current;
		if (e === null) return;
		let r = () => {
			e.style.setProperty("height", "auto"), e.style.setProperty("height", `${e.scrollHeight}px`);
		};
		r();
		let i = new ResizeObserver(r);
		return n.current !== null && i.observe(n.current), () => i.disconnect();
	}, [i]), /* @__PURE__ */ O("form", {
		id: "ask",
		ref: n,
		class: o ? "ask busy" : "ask",
		autocomplete: "off",
		onSubmit: (n) => {
			n.preventDefault(), e.translate(t.current?.value ?? "");
		}
	}, /* @__PURE__ */ O("label", {
		for: "sentence",
		id: "sentence-label",
		class: "unseen"
	}, a.field), /* @__PURE__ */ O("div", { class: "field" }, /* @__PURE__ */ O("textarea", {
		id: "sentence",
		ref: t,
		rows: 1,
		dir: "auto",
		spellcheck: !1,
		placeholder: a.field,
		lang: r?.source_language ?? void 0,
		"aria-describedby": "problem",
		"aria-invalid": e.now.problem.value !== null,
		value: i,
		onInput: (t) => e.draft.value = t.currentTarget.value,
		onKeyDown: (e) => {
			e.key !== "Enter" || e.shiftKey || e.isComposing || (e.preventDefault(), n.current?.requestSubmit());
		}
	}), /* @__PURE__ */ O("button", {
		id: "translate",
		type: "submit",
		class: "main"
	}, a.button)));
}
function Ii({ texts: e }) {
	let t = J(), n = t.now.row.value;
	return /* @__PURE__ */ O("div", {
		class: "ask",
		id: "texts",
		hidden: e.length < 2
	}, /* @__PURE__ */ O("label", null, "Text", " ", /* @__PURE__ */ O(di, {
		id: "text",
		value: String(n ?? 0),
		options: e.slice(0, 500).map((e, t) => [String(t), ji(t, e)]),
		choose: (e) => t.openText(Number(e))
	})), e.length > 500 && /* @__PURE__ */ O("label", null, "or number", " ", /* @__PURE__ */ O("input", {
		type: "number",
		min: 0,
		max: e.length - 1,
		value: n ?? 0,
		onChange: (e) => t.openText(Number(e.currentTarget.value))
	})));
}
function Li() {
	let e = J(), { now: t } = e, n = t.problem.value, r = Ai({
		...e.state,
		translating: t.translating.value,
		reading: t.reading.value,
		slow: t.slow.value,
		share: t.share.value
	}), i = t.answer.value, a = t.model.value?.facts, o = i === null ? [] : [...i.remarks, mi(i)].filter((e) => e !== "");
	return /* @__PURE__ */ O("div", { class: "messages" }, /* @__PURE__ */ O("p", {
		id: "problem",
		class: "problem",
		role: "alert",
		hidden: n === null
	}, /* @__PURE__ */ O("span", null, n?.message ?? ""), n?.gone === !0 && /* @__PURE__ */ O("button", {
		type: "button",
		onClick: () => e.retry()
	}, "Try again")), /* @__PURE__ */ O("section", {
		id: "result",
		class: t.translating.value !== null && i !== null ? "result stale" : "result",
		"aria-labelledby": "result-title",
		hidden: i === null || i.text == null && o.length === 0
	}, /* @__PURE__ */ O("h2", {
		id: "result-title",
		hidden: i?.text == null
	}, xi(a?.task).result), /* @__PURE__ */ O("p", {
		id: "translation",
		class: "translation",
		dir: "auto",
		role: "status",
		lang: a?.target_language ?? void 0,
		hidden: i?.text == null
	}, i?.text === "" ? "(The model wrote nothing.)" : i?.text ?? ""), /* @__PURE__ */ O("p", {
		id: "remark",
		class: "remark",
		hidden: o.length === 0
	}, o.join(" "))), /* @__PURE__ */ O("p", {
		id: "progress",
		class: "progress",
		role: "status",
		hidden: r === ""
	}, r, t.reading.value && t.share.value !== null && /* @__PURE__ */ O("button", {
		id: "stop",
		type: "button",
		onClick: () => e.halt()
	}, "Stop")));
}
// src/pen.ts
var Ri = 2e4, zi = class {
	constructor() {
		this.fillStyle = "#000", this.strokeStyle = "#000", this.font = "13px sans-serif", this.textAlign = "left", this.textBaseline = "middle", this.lineWidth = 1, this.imageSmoothingEnabled = !0, this.parts = [], this.definitions = [], this.opened = [0], this.path = [
			0,
			0,
			0,
			0
		], this.dash = [], this.ruler = document.createElement("canvas").getContext("2d");
	}
	file(e, t, n) {
		let r = `width="${X(e)}" height="${X(t)}" viewBox="0 0 ${X(e)} ${X(t)}"`, i = this.definitions.length > 0 ? `<defs>${this.definitions.join("")}</defs>` : "";
		return `<svg xmlns="http://www.w3.org/2000/svg" ${r} role="img"><title>${Hi(n)}</title>${i}${this.parts.join("\n")}</svg>\n`;
	}
	hatch(e) {
		return this.definitions.push(`<pattern id="hatch" width="8" height="8" patternUnits="userSpaceOnUse"><path d="M0 8 8 0M-2 2 2 -2M6 10 10 6" stroke="${Hi(e)}"/></pattern>`), "url(#hatch)";
	}
	save() {
		this.opened.push(0);
	}
	restore() {
		this.parts.push("</g>".repeat(this.opened.pop() ?? 0));
	}
	translate(e, t) {
		this.group(`transform="translate(${X(e)} ${X(t)})"`);
	}
	rotate(e) {
		this.group(`transform="rotate(${X(e * 180 / Math.PI)})"`);
	}
	scale(e, t) {
		this.group(`transform="scale(${e} ${t})"`);
	}
	beginPath() {
		this.path = [
			0,
			0,
			0,
			0
		];
	}
	rect(e, t, n, r) {
		this.path = [
			e,
			t,
			n,
			r
		];
	}
	clip() {
		let e = `clip${this.definitions.length}`;
		this.definitions.push(`<clipPath id="${e}"><rect ${Vi(...this.path)}/></clipPath>`), this.group(`clip-path="url(#${e})"`);
	}
	clearRect() {}
	fillRect(e, t, n, r) {
		this.parts.push(`<rect ${Vi(e, t, n, r)} fill="${Hi(String(this.fillStyle))}"/>`);
	}
	strokeRect(e, t, n, r) {
		let i = this.dash.length > 0 ? ` stroke-dasharray="${this.dash.join(" ")}"` : "";
		this.parts.push(`<rect ${Vi(e, t, n, r)} fill="none" stroke="${Hi(String(this.strokeStyle))}" stroke-width="${this.lineWidth}"${i}/>`);
	}
	fillText(e, t, n) {
		let [, r = "", i = "13", a = "sans-serif"] = /^(\d+ )?([\d.]+)px (.*)$/su.exec(this.font) ?? [];
		this.parts.push(`<text x="${X(t)}" y="${X(n)}" dy="0.35em" font-family="${Hi(a)}" font-size="${i}"${r === "" ? "" : ` font-weight="${r.trim()}"`} text-anchor="${{
			center: "middle",
			right: "end",
			end: "end",
			left: "start",
			start: "start"
		}[this.textAlign]}" fill="${Hi(String(this.fillStyle))}">${Hi(e)}</text>`);
	}
	measureText(e) {
		let { ruler: t } = this;
		if (t === null) throw Error("a canvas has no context");
		return t.font = this.font, t.measureText(e);
	}
	drawImage(e, ...[t, n, r, i]) {
		if (!(e instanceof HTMLCanvasElement) || [
			t,
			n,
			r,
			i
		].includes(void 0)) return;
		let [a, o, s, c] = [
			t ?? 0,
			n ?? 0,
			r ?? 0,
			i ?? 0
		], l = e.width * e.height, u = l <= Ri && Bi(e);
		if (!u) {
			this.parts.push(`<image ${Vi(a, o, s, c)} preserveAspectRatio="none" image-rendering="pixelated" href="${e.toDataURL()}"/>`);
			return;
		}
		let [d, f] = [s / e.width, c / e.height];
		for (let t = 0; t < l; t++) {
			let [n, r, i, s] = u.subarray(4 * t, 4 * t + 4);
			if (s === 0) continue;
			let [c, l] = [t % e.width, Math.floor(t / e.width)];
			this.parts.push(`<rect ${Vi(a + c * d, o + l * f, d, f)} fill="rgb(${n},${r},${i})" shape-rendering="crispEdges"/>`);
		}
	}
	setLineDash(e) {
		this.dash = e;
	}
	group(e) {
		this.parts.push(`<g ${e}>`), this.opened.push((this.opened.pop() ?? 0) + 1);
	}
};
function Bi(e) {
	let t = document.createElement("canvas");
	[t.width, t.height] = [e.width, e.height];
	let n = t.getContext("2d", { willReadFrequently: !0 });
	return n?.drawImage(e, 0, 0), n?.getImageData(0, 0, e.width, e.height).data;
}
function X(e) {
	return Math.round(e * 1e3) / 1e3;
}
function Vi(e, t, n, r) {
	return `x="${X(e)}" y="${X(t)}" width="${X(Math.max(n, 0))}" height="${X(Math.max(r, 0))}"`;
}
function Hi(e) {
	return e.replace(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "�").replace(/[&<>"]/g, (e) => `&#${e.charCodeAt(0)};`);
}
// src/ramp.ts
var Ui = $i([
	.962,
	.012,
	95
], [
	.62,
	.1,
	195
], [
	.28,
	.12,
	280
]), Wi = $i([
	.27,
	.03,
	270
], [
	.6,
	.1,
	205
], [
	.93,
	.11,
	110
]), Gi = ea([
	.42,
	.13,
	255
], [
	.962,
	.003,
	95
], [
	.5,
	.15,
	50
]), Ki = ea([
	.82,
	.1,
	240
], [
	.27,
	.02,
	270
], [
	.82,
	.13,
	65
]);
function qi(e, t) {
	let n = Math.round(Math.min(Math.max(t, 0), 1) * (e.steps.length - 1));
	return e.steps[n] ?? [
		0,
		0,
		0
	];
}
var Ji = /* @__PURE__ */ new WeakMap();
function Yi(e) {
	let t = Ji.get(e) ?? new Uint32Array(Uint8Array.from(e.steps.flatMap((e) => [...e, 255])).buffer);
	return Ji.set(e, t), t;
}
function Xi([e, t, n]) {
	return `rgb(${e}, ${t}, ${n})`;
}
function Zi(e) {
	let t = Qi(e);
	return (t + .05) / .05 >= 1.05 / (t + .05) ? "#000" : "#fff";
}
function Qi(e) {
	let [t, n, r] = e.map((e) => ra(e / 255));
	return .2126 * t + .7152 * n + .0722 * r;
}
function $i(e, t, n) {
	let r = (e[0] - t[0]) / (e[0] - n[0]);
	return { steps: Array.from({ length: 256 }, (i, a) => {
		let o = a / 255, [s, c, l] = o < r ? [
			e,
			t,
			o / r
		] : [
			t,
			n,
			(o - r) / (1 - r)
		];
		return ta([
			e[0] + (n[0] - e[0]) * o,
			s[1] + (c[1] - s[1]) * l,
			s[2] + (c[2] - s[2]) * l
		]);
	}) };
}
function ea(e, t, n) {
	return { steps: Array.from({ length: 255 }, (r, i) => {
		let a = i / 254, o = a < .5 ? e : n, s = Math.abs(2 * a - 1);
		return ta([
			t[0] + (o[0] - t[0]) * s,
			t[1] + (o[1] - t[1]) * s,
			o[2]
		]);
	}) };
}
function ta([e, t, n]) {
	let r = t * Math.cos(n * Math.PI / 180), i = t * Math.sin(n * Math.PI / 180), a = (e + .3963377774 * r + .2158037573 * i) ** 3, o = (e - .1055613458 * r - .0638541728 * i) ** 3, s = (e - .0894841775 * r - 1.291485548 * i) ** 3;
	return [
		na(4.0767416621 * a - 3.3077115913 * o + .2309699292 * s),
		na(-1.2684380046 * a + 2.6097574011 * o - .3413193965 * s),
		na(-.0041960863 * a - .7034186147 * o + 1.707614701 * s)
	];
}
function na(e) {
	let t = e <= .0031308 ? 12.92 * e : 1.055 * e ** (1 / 2.4) - .055;
	return Math.round(Math.min(Math.max(t, 0), 1) * 255);
}
function ra(e) {
	return e <= .04045 ? e / 12.92 : ((e + .055) / 1.055) ** 2.4;
}
// src/painting.ts
function ia(e, t, n = !1) {
	let r = document.createElement("canvas"), { rows: i, columns: a } = e[0]?.matrix ?? {
		rows: 0,
		columns: 0
	};
	if (i === 0 || a === 0) return r;
	[r.width, r.height] = [a, i * e.length];
	let o = new ImageData(a, i * e.length), [s, c] = [new Uint32Array(o.data.buffer), Yi(t)], l = c.length - 1;
	return e.forEach(({ matrix: { values: e }, shade: t }, r) => {
		for (let o = 0; o < i; o++) {
			let [u, d] = [o * a, (r * i + o) * a];
			for (let r = 0; r < a; r++) {
				let i = e[u + r] ?? 0;
				if (Number.isNaN(i)) continue;
				let f = Math.min(Math.max(t(i, o), 0), 1);
				s[d + (n ? a - 1 - r : r)] = c[Math.round(f * l)] ?? 0;
			}
		}
	}), r.getContext("2d")?.putImageData(o, 0, 0), r;
}
function aa(e, t) {
	if (e instanceof zi) return e.hatch(t);
	let n = document.createElement("canvas");
	[n.width, n.height] = [8, 8];
	let r = n.getContext("2d");
	if (r === null) return null;
	r.strokeStyle = t;
	for (let e of [
		-8,
		0,
		8
	]) r.moveTo(e, 8), r.lineTo(e + 8, 0);
	return r.stroke(), r.createPattern(n, "repeat");
}
function oa(e, t, n) {
	if (e.measureText(t).width <= n) return t;
	let r = Array.from(t.slice(0, 200));
	for (; r.length > 1 && e.measureText(`${r.join("")}…`).width > n;) r.pop();
	return `${r.join("")}…`;
}
function sa(e, t, n, { x: r, y: i, width: a }, o, s) {
	for (let n = 0; n < 64; n++) e.fillStyle = Xi(qi(t, n / 63)), e.fillRect(r + n * a / 64, i, a / 64 + .5, 10);
	e.fillStyle = o, e.font = `11px ${s}`, e.textBaseline = "middle", n.forEach(({ share: t, text: o }, s) => {
		let c = n.length === 2 && s === 1;
		e.textAlign = t === 0 ? "left" : c || t === 1 ? "right" : "center", e.fillText(o, r + t * a, i + 20);
	});
}
function ca(e, t, n) {
	let r = Math.max(1, window.devicePixelRatio), [i, a] = [Math.max(Math.round(t * r), 1), Math.max(Math.round(n * r), 1)], o = e.getContext("2d");
	return e.width !== i || e.height !== a ? ([e.width, e.height] = [i, a], e.style.setProperty("width", `${t}px`), e.style.setProperty("height", `${n}px`)) : (o?.resetTransform(), o?.clearRect(0, 0, i, a)), o?.setTransform(r, 0, 0, r, 0, 0), {
		width: t,
		height: n
	};
}
// src/head-grid.ts
var la = 3, ua = class {
	constructor(e, t, n, r, i) {
		this.theme = e, this.canvas = t, this.room = n, this.readout = r, this.handlers = i, this.heads = null, this.plan = null, this.pictures = [], this.measured = 0, this.pointed = null, this.marks = document.createElement("canvas"), this.marks.className = "marks", this.marks.ariaHidden = "true", t.after(this.marks);
		let a = (e) => {
			let n = t.getBoundingClientRect();
			return this.plan && Sr(this.plan, e.clientX - n.left, e.clientY - n.top);
		};
		t.addEventListener("pointermove", (e) => this.point(a(e))), t.addEventListener("pointerleave", () => this.point(null)), t.addEventListener("click", (e) => {
			let t = a(e);
			t !== null && (e.shiftKey || e.ctrlKey || e.metaKey ? i.toggle(t) : i.choose(t));
		}), t.addEventListener("keydown", (e) => this.pressed(e)), t.addEventListener("blur", () => this.point(null)), new ResizeObserver(() => {
			n.clientWidth !== this.measured && this.redraw();
		}).observe(n);
	}
	draw(e) {
		let t = this.heads;
		this.heads = e;
		let n = [
			"overview",
			"ramp",
			"scale"
		].every((n) => e[n] === t?.[n]);
		n || (this.pictures = e.overview.map((t, n) => da(e, t, n)));
		let r = e.statistic === t?.statistic && e.sorted === t.sorted && e.least === t.least;
		n && this.plan !== null && e.layers === t?.layers && r ? this.mark() : this.redraw();
	}
	point(e) {
		Cr(e, this.pointed) || (this.pointed = e, this.handlers.point(e), this.mark());
	}
	pressed(e) {
		if (e.ctrlKey || e.altKey || e.metaKey || this.plan === null) return;
		let t = this.pointed ?? this.heads?.shown ?? null;
		if (e.key === "Enter" || e.key === " ") {
			if (e.preventDefault(), t === null) return;
			e.key === " " && !Cr(t, this.heads?.shown ?? null) ? this.handlers.toggle(t) : this.handlers.choose(t);
		} else /^(Arrow(Left|Right|Up|Down)|Home|End)$/.test(e.key) && (e.preventDefault(), this.point(wr(this.plan, t, e.key)));
	}
	redraw() {
		let { heads: e } = this, t = this.room.clientWidth, n = this.canvas.getContext("2d");
		if (e === null || n === null || t === 0) return;
		this.measured = t;
		let r = this.theme.font;
		n.font = `12px ${r}`;
		let i = (e) => n.measureText(e).width, a = (t) => fa(e, t), o = e.sorted && e.statistic !== null ? Tr(e.layers, a) : null, s = xr(e.layers, t, i, o), c = Math.max(...s.thumbnails.map((e) => a(e) ?? 0), 1e-9), l = e.least / 100 * c, u = s.thumbnails.filter((e) => l === 0 || (a(e) ?? 0) >= l), d = {
			...s,
			thumbnails: u
		};
		this.plan = d;
		for (let e of [this.canvas, this.marks]) ca(e, d.width, d.height);
		n.textBaseline = "middle";
		for (let { text: e, x: t, y: i, heading: a } of d.writing) n.font = `${a ? "600 " : ""}12px ${r}`, n.fillStyle = this.theme.tone("quiet"), n.textAlign = a ? "left" : "right", n.fillText(e, t, i, a ? d.width : Math.max(t, 1));
		this.drawPictures(n, d, e, c), this.mark();
	}
	drawPictures(e, t, n, r) {
		e.imageSmoothingQuality = "high";
		for (let i of t.thumbnails) {
			let a = n.statistic === null ? null : fa(n, i), o = n.statistic === null ? t.size : t.size - la - 1;
			e.fillStyle = this.theme.tone("line"), e.fillRect(i.x, i.y, t.size, o);
			let [s, c] = [this.pictures[i.layer], n.overview[i.layer]];
			if (s !== void 0 && c !== void 0 && s.width > 0) {
				let { rows: n, keys: r } = c;
				e.drawImage(s, 0, i.head * n, r, n, i.x, i.y, t.size, o);
			}
			a !== null && (e.fillStyle = this.theme.tone("action"), e.fillRect(i.x, i.y + t.size - la, a / r * t.size, la));
		}
	}
	mark() {
		let { heads: e, plan: t } = this, n = this.marks.getContext("2d");
		if (e === null || t === null || n === null) return;
		n.clearRect(0, 0, t.width, t.height);
		let r = (e, r, i) => {
			let a = t.thumbnails.find((t) => Cr(t, e));
			a !== void 0 && (n.strokeStyle = i, n.lineWidth = r, n.strokeRect(a.x, a.y, t.size, t.size));
		};
		e.together.forEach((t, n) => r(t, 3, e.colours[n] ?? "")), e.together.length < 2 ? r(e.shown, 3, this.theme.tone("accent")) : r(e.shown, 4, e.colours[0] ?? ""), r(this.pointed, 2, this.theme.tone("ink"));
		let i = this.pointed ?? e.shown, a = i === null ? void 0 : e.layers[i.layer];
		if (i === null || a === void 0) {
			this.readout.textContent = "mean of all heads";
			return;
		}
		let o = fa(e, i), s = e.statistic === null || o === null ? "" : `: ${Ci(e.statistic)} ${Ei(e.statistic, o)}`;
		this.readout.textContent = `${Y(a, i.head)}${s}`, this.canvas.title = a.name;
	}
};
function da({ layers: e, scale: t, ramp: n, rightToLeft: r }, i, a) {
	return ia(Array.from({ length: i.heads }, (n, r) => {
		let o = we(i, r);
		return {
			matrix: o,
			shade: Le(t, o, e[a]?.keys ?? i.keys)
		};
	}), n, r.has(a));
}
function fa({ statistics: e, statistic: t }, { layer: n, head: r }) {
	return t === null ? null : e.layers[n]?.[t]?.[r] ?? null;
}
// src/heads-panel.tsx
function pa() {
	let e = J(), { now: t, theme: n } = e, r = U(null), i = U(null), a = U(null), o = U(null);
	Gn(() => {
		r.current !== null && i.current !== null && a.current !== null && (o.current = new ua(n, r.current, i.current, a.current, {
			choose: ({ layer: t, head: n }) => e.see(t, n),
			toggle: (t) => e.toggle(t),
			point: (t) => e.expect(t)
		}), s());
	}, []);
	let s = () => {
		let [r, i, a] = [
			t.answer.value,
			t.overview.value,
			t.head.value
		];
		n.changes.value;
		let s = {
			shown: a === null ? null : {
				layer: t.layer.value,
				head: a
			},
			together: e.heads.value,
			scale: t.scale.value,
			statistic: t.statistic.value,
			sorted: t.sorted.value,
			least: t.statistic.value === null ? 0 : t.least.value
		};
		r !== null && i !== null && o.current?.draw({
			...s,
			layers: r.layers,
			overview: i.tiles,
			statistics: i.statistics,
			rightToLeft: i.rightToLeft,
			colours: n.heads,
			ramp: n.ramp
		});
	};
	q(s);
	let c = t.overview.value?.statistics, l = (c?.names ?? []).filter((e) => c?.layers.some((t) => t[e])), u = e.heads.value.length;
	return /* @__PURE__ */ O(A, null, /* @__PURE__ */ O("div", { class: "pane-head" }, /* @__PURE__ */ O("h2", { id: "heads-title" }, "Heads"), /* @__PURE__ */ O("button", {
		type: "button",
		class: "quiet",
		hidden: u < 2,
		onClick: () => e.set({ selected: [] })
	}, u, " selected · clear")), /* @__PURE__ */ O("div", { class: "heads-choices" }, /* @__PURE__ */ O("label", null, "marked by", " ", /* @__PURE__ */ O(di, {
		id: "statistic",
		value: t.statistic.value ?? "",
		options: [["", "nothing"], ...l.map((e) => [e, Ci(e)])],
		choose: (t) => e.set({ statistic: t || null })
	})), /* @__PURE__ */ O("label", null, /* @__PURE__ */ O("input", {
		id: "sorted",
		type: "checkbox",
		checked: t.sorted.value,
		disabled: t.statistic.value === null,
		onChange: (t) => e.set({ sorted: t.currentTarget.checked })
	}), " ", "sorted"), /* @__PURE__ */ O("label", { hidden: t.statistic.value === null }, "from", " ", /* @__PURE__ */ O("input", {
		id: "least",
		type: "number",
		min: 0,
		max: 100,
		value: t.least.value,
		onInput: ({ currentTarget: t }) => t.validity.valid && e.set({ least: t.valueAsNumber || 0 })
	}), " ", "% of the largest")), /* @__PURE__ */ O("div", {
		class: "grid-room",
		ref: i
	}, /* @__PURE__ */ O("div", { class: "stack" }, /* @__PURE__ */ O("canvas", {
		id: "grid",
		ref: r,
		tabIndex: 0,
		role: "application",
		"aria-roledescription": "grid of heads",
		"aria-labelledby": "heads-title",
		"aria-describedby": "grid-readout grid-help"
	}))), /* @__PURE__ */ O("p", {
		id: "grid-readout",
		class: "hint",
		ref: a,
		"aria-live": "polite"
	}), /* @__PURE__ */ O("p", {
		id: "grid-help",
		class: "unseen"
	}, "Arrow keys move, Enter shows a head, Space selects it beside the others."));
}
// src/help-dialog.tsx
var ma = [
	[
		"Heads",
		"arrows, Enter",
		"go from head to head, show one"
	],
	[
		"Heads",
		"Space, Shift + click",
		"select a head beside the one that is shown"
	],
	[
		"Map",
		"arrows, Enter",
		"move the crosshair, keep a cell"
	],
	[
		"Map",
		"+ − 0",
		"closer, farther, all of it"
	],
	[
		"Map",
		"drag, wheel, pinch",
		"move, zoom; with Shift, draw a frame"
	],
	[
		"Words",
		"arrows, Enter",
		"go from word to word, keep one"
	],
	[
		"Lines",
		"arrows, Enter",
		"along the words, or to the other side"
	],
	[
		"Mechanism",
		"Tab, Enter",
		"from key to key, keep one"
	],
	[
		"Beams",
		"Tab, Enter",
		"from token to token, go on with one"
	],
	[
		"Panes",
		"arrows on a separator",
		"make a pane larger or smaller"
	],
	[
		"All",
		"Esc",
		"let go of what is kept"
	],
	[
		"All",
		"?",
		"this help"
	]
];
function ha({ open: e }) {
	dr();
	let t = U(null);
	return H(() => {
		e.value ? t.current?.showModal() : t.current?.close();
	}, [e.value]), /* @__PURE__ */ O("dialog", {
		id: "help-dialog",
		ref: t,
		"aria-labelledby": "help-title",
		onClose: () => e.value = !1,
		onClick: (n) => {
			n.target === t.current && (e.value = !1);
		}
	}, /* @__PURE__ */ O("div", { class: "help" }, /* @__PURE__ */ O("h2", { id: "help-title" }, "How to read this"), /* @__PURE__ */ O("p", null, "Each row of the map is a token that looks, each column a token that is looked at. The darker a cell, the more of the row’s attention went there. A row adds up to 100 %. Hatching says that no query may look there."), /* @__PURE__ */ O("p", null, "On the left are all heads of all layers. Point at a word on the right: the words that it looks at light up, and the bars below say how much."), /* @__PURE__ */ O("table", null, /* @__PURE__ */ O("tbody", null, ma.map(([e, t, n]) => /* @__PURE__ */ O("tr", { key: e + t }, /* @__PURE__ */ O("th", { scope: "row" }, e), /* @__PURE__ */ O("td", null, /* @__PURE__ */ O("kbd", null, t)), /* @__PURE__ */ O("td", null, n))))), /* @__PURE__ */ O("p", { class: "note" }, "The address always is a link to what is on screen. Back undoes."), /* @__PURE__ */ O("button", {
		type: "button",
		class: "main",
		onClick: () => e.value = !1
	}, "Close")));
}
// src/hooks.ts
var ga = 120;
function _a(e, t, n) {
	let r = K(null), [i, a] = [K(""), K(!1)];
	return H(() => {
		if (e === null) return;
		let t = new AbortController();
		a.value = !0;
		let o = setTimeout(() => n(e, t.signal)?.then((n) => {
			t.signal.aborted || ([r.value, i.value, a.value] = [
				{
					asked: e,
					found: n
				},
				"",
				!1
			]);
		}, (e) => {
			t.signal.aborted || ([i.value, a.value] = [P.of(e).message, !1]);
		}), r.peek() === null ? 0 : ga);
		return () => {
			clearTimeout(o), t.abort();
		};
	}, [t]), {
		came: r,
		problem: i,
		waiting: a
	};
}
function va(e, t) {
	let n = U(null);
	return H(() => {
		let [t, r, i] = [
			n.current,
			n.current?.getContext("2d"),
			n.current?.parentElement
		];
		if (!t || !r || !i) return;
		let a = () => e(t, r, i);
		a();
		let o = new ResizeObserver(a);
		return o.observe(i), () => o.disconnect();
	}, t), n;
}
// src/alignment-panel.tsx
function ya() {
	let e = J(), { now: t, door: n } = e, r = e.layer.value, [i, a] = [t.answer.value?.map ?? null, t.layer.value], o = t.sheet.value?.head ?? t.head.value, s = JSON.stringify([
		i,
		a,
		o
	]), c = r?.within === !1, { came: l, problem: u } = _a(c && i !== null ? s : null, s, (e, t) => n.alignment?.(i ?? "", a, o, t)), d = l.value?.asked === s ? l.value.found : null;
	if (H(() => (e.gold.value = d?.links ?? [], () => e.gold.value = []), [d]), r === null || !c) return /* @__PURE__ */ O("p", { class: "hint empty" }, "Choose a layer that looks from the target to the source: its gold links stand here.");
	if (d === null) return /* @__PURE__ */ O(li, {
		problem: u.value,
		doing: "Comparing the links…"
	});
	let f = d.links.filter((e) => e.sure).length;
	return /* @__PURE__ */ O("div", { class: "doubt" }, /* @__PURE__ */ O("div", {
		class: "aside",
		id: "alignment"
	}, /* @__PURE__ */ O("h3", null, Y(r, o)), /* @__PURE__ */ O("table", null, /* @__PURE__ */ O("tbody", null, [
		["Precision", d.precision === null ? "–" : F(d.precision)],
		["Recall", F(d.recall)],
		["Alignment error rate", F(d.error)]
	].map(([e, t]) => /* @__PURE__ */ O("tr", { key: e }, /* @__PURE__ */ O("th", { scope: "row" }, e), /* @__PURE__ */ O("td", null, t))))), /* @__PURE__ */ O(ci, { said: u.value })), /* @__PURE__ */ O("p", { class: "note" }, "On the map are the links of annotators: ", f, " sure ones, and ", d.links.length - f, " possible ones, dashed. The head links each target token with the source token of its largest weight: ", d.guessed, " links of words.", ` ${d.links.filter((e) => e.guessed).length} of them are gold links.`));
}
// src/beams.ts
function ba(e) {
	return xa(e, [...e.keys()], 0);
}
function xa(e, t, n) {
	let r = (t, n) => e[t]?.tokens[n], i = /* @__PURE__ */ new Map();
	for (let e of t) {
		let t = r(e, n);
		t !== void 0 && i.set(t, [...i.get(t) ?? [], e]);
	}
	return [...i.values()].map((t) => {
		let [i = 0] = t, a = n + 1, o = () => r(i, a) !== void 0 && t.every((e) => r(e, a) === r(i, a));
		for (; o();) a++;
		return {
			text: Sa(e[i]?.tokens ?? [], n, a),
			next: xa(e, t, a),
			leaf: t.find((t) => e[t]?.tokens.length === a) ?? null
		};
	});
}
function Sa(e, t, n) {
	return wt(e, e.length).slice(t, n).map(({ text: e, begins: t }, n) => t && n > 0 ? ` ${e}` : e).join("");
}
function Ca({ outputs: e }, t, n) {
	return [...e.slice(0, t).map((e) => e.id), n];
}
function wa(e) {
	return e === null ? "−∞" : e.toFixed(2).replace("-", "−");
}
// src/beams-panel.tsx
var Ta = 20;
function Ea() {
	let e = J(), { now: t, door: n } = e, r = U(null), i = t.answer.value, a = i?.map ?? null, { came: o, problem: s } = _a(a, a ?? "", (e, t) => n.beams?.(e, t)), c = o.value;
	if (c === null || i === null) return /* @__PURE__ */ O(li, {
		problem: s.value,
		doing: "Searching…"
	});
	let l = c.found, u = t.forced.value, d = c.asked !== a || t.translating.value !== null, f = (t) => {
		r.current?.focus(), e.choose(t);
	}, p = l.outputs.map(({ token: e }) => e), [m] = l.hypotheses;
	return /* @__PURE__ */ O("div", { class: "doubt beams" }, /* @__PURE__ */ O("div", { class: "aside" }, /* @__PURE__ */ O("h3", null, "What else could it have written?"), /* @__PURE__ */ O("p", null, "A beam search keeps several beginnings at each step. The tree has the ", l.hypotheses.length, " best translations with which it ends. What they begin with alike stands once.", m !== void 0 && m.tokens.join(" ") !== p.join(" ") && " What stands above was written without such a search."), u.length > 0 && /* @__PURE__ */ O("p", null, "You chose how this one begins: “", /* @__PURE__ */ O("bdi", null, Sa(p, 0, u.length)), "”.", " ", /* @__PURE__ */ O("button", {
		id: "free",
		type: "button",
		onClick: () => f([])
	}, "Let the model choose")), /* @__PURE__ */ O("p", { class: "note" }, /* @__PURE__ */ O("b", null, "log p"), " is the logarithm of the probability of all tokens. The ", /* @__PURE__ */ O("b", null, "score"), " is what the search compares: log p, corrected by the settings of the search, as for the length."), /* @__PURE__ */ O(ci, { said: s.value })), /* @__PURE__ */ O("div", {
		class: d ? "tree stale" : "tree",
		tabIndex: 0,
		role: "region",
		"aria-label": "Hypotheses",
		"aria-busy": d
	}, /* @__PURE__ */ O(Da, {
		branches: ba(l.hypotheses),
		beams: l
	})), /* @__PURE__ */ O("div", {
		class: d ? "table-room stale" : "table-room",
		ref: r,
		tabIndex: 0,
		role: "region",
		"aria-label": "Alternatives",
		"aria-busy": d
	}, /* @__PURE__ */ O(ka, {
		beams: l,
		forced: u.length,
		choose: f
	})));
}
function Da({ branches: e, beams: t }) {
	return /* @__PURE__ */ O("ul", null, e.map(({ text: e, next: n, leaf: r }, i) => {
		let a = r === null ? void 0 : t.hypotheses[r];
		return /* @__PURE__ */ O("li", { key: i }, /* @__PURE__ */ O("span", { class: r === 0 ? "words own" : "words" }, /* @__PURE__ */ O("bdi", null, e), a !== void 0 && /* @__PURE__ */ O("span", {
			class: "number",
			"data-hypothesis": r
		}, "score ", wa(a.score), " · log p ", wa(a.log_probability), !a.finished && " · not ended")), n.length > 0 && /* @__PURE__ */ O(Da, {
			branches: n,
			beams: t
		}));
	}));
}
function Oa(e) {
	return Sa([e], 0, 1);
}
function ka({ beams: e, forced: t, choose: n }) {
	let { now: r } = J(), i = K(null), { outputs: a } = e, o = r.layer.value, s = r.answer.value?.doubt?.rows[o] === !0 ? r.pinned.value : null, c = s?.side === "target" ? s.index : s?.partner, l = c === void 0 ? null : c + (r.sheet.value?.excerpt.rows.from ?? 0);
	H(() => void (i.value = null), [e, l]);
	let u = Math.ceil(a.length / Ta), d = Math.min(i.value ?? Math.floor((l ?? 0) / Ta), u - 1), f = Math.max(d, 0) * Ta, p = a.slice(f, f + Ta);
	return /* @__PURE__ */ O(A, null, /* @__PURE__ */ O("table", { id: "alternatives" }, /* @__PURE__ */ O("caption", null, "Token by token: what is most probable after those before it. Choose one to go on from there; marks of the model, such as ⟨end⟩, cannot be chosen."), /* @__PURE__ */ O("thead", null, /* @__PURE__ */ O("tr", null, /* @__PURE__ */ O("th", { scope: "col" }, "written"), /* @__PURE__ */ O("th", { scope: "col" }, "p"), /* @__PURE__ */ O("th", { scope: "col" }, "most probable"))), /* @__PURE__ */ O("tbody", null, p.map((r, i) => /* @__PURE__ */ O("tr", {
		key: f + i,
		class: f + i === l ? "partner" : void 0,
		"data-output": f + i
	}, /* @__PURE__ */ O("th", { scope: "row" }, /* @__PURE__ */ O("bdi", null, Oa(r.token)), f + i < t && /* @__PURE__ */ O("small", null, " (chosen)")), /* @__PURE__ */ O("td", null, I(Math.exp(r.log_probability ?? -Infinity))), /* @__PURE__ */ O("td", { class: "five" }, r.top.map((t) => /* @__PURE__ */ O(Aa, {
		key: t.id,
		output: r,
		one: t,
		choose: () => n(Ca(e, f + i, t.id))
	}))))))), u > 1 && /* @__PURE__ */ O("p", { class: "buttons" }, /* @__PURE__ */ O("button", {
		type: "button",
		disabled: d === 0,
		onClick: () => i.value = d - 1
	}, "Earlier"), /* @__PURE__ */ O("button", {
		type: "button",
		disabled: d === u - 1,
		onClick: () => i.value = d + 1
	}, "Later"), /* @__PURE__ */ O("span", { class: "note" }, f, "–", f + p.length - 1, " of ", a.length)));
}
function Aa({ output: e, one: t, choose: n }) {
	let r = t.id === e.id, i = /* @__PURE__ */ O(A, null, /* @__PURE__ */ O("bdi", null, Oa(t.token)), " ", F(t.probability));
	return r || !t.open ? /* @__PURE__ */ O("span", { class: r ? "own" : void 0 }, i) : /* @__PURE__ */ O("button", {
		type: "button",
		class: "link",
		onClick: n
	}, i);
}
// src/heads-legend.tsx
function ja() {
	let e = J(), { now: t, theme: n } = e;
	n.changes.value;
	let r = t.answer.value?.layers ?? [], i = e.heads.value;
	return /* @__PURE__ */ O(A, null, /* @__PURE__ */ O("ul", {
		class: "heads-legend",
		"aria-label": "Heads"
	}, i.map((t, i) => {
		let a = r[t.layer];
		if (a === void 0) return null;
		let o = !e.alike(t);
		return /* @__PURE__ */ O("li", {
			key: `${t.layer}.${t.head}`,
			class: o ? "apart" : void 0
		}, /* @__PURE__ */ O("span", {
			class: "swatch",
			ref: (e) => e?.style.setProperty("--paint", n.heads[i] ?? ""),
			"aria-hidden": "true"
		}), Y(a, t.head), o && " (another shape)", i > 0 && /* @__PURE__ */ O("button", {
			type: "button",
			class: "quiet",
			"aria-label": "Let it go",
			onClick: () => e.toggle(t)
		}, "×"));
	}), i.length === 0 && /* @__PURE__ */ O("li", null, "mean of all heads")), i.length < 2 && /* @__PURE__ */ O("p", { class: "note" }, "Select more heads on the left: ", /* @__PURE__ */ O("kbd", null, "Shift"), " and a click, or ", /* @__PURE__ */ O("kbd", null, "Space"), "."));
}
// src/insight.ts
var Ma = .25;
function Na(e) {
	let { rows: t, columns: n, values: r } = e, i = new Float64Array(n), a = 0;
	for (let e = 0; e < t * n; e++) {
		let t = r[e] ?? NaN;
		Number.isNaN(t) || (i[e % n] = (i[e % n] ?? 0) + t, a += t);
	}
	let o = Math.max(Ma, Math.min(4 / n, 1)) * a;
	return a === 0 ? [] : [...i.keys()].filter((e) => (i[e] ?? 0) >= o);
}
function Pa(e, t, n = /* @__PURE__ */ new Set()) {
	let r = {
		entropy: 0,
		most: 0,
		first: 0,
		last: 0,
		distance: 0,
		self: 0,
		previous: 0,
		next: 0
	}, [i, a, o] = [
		0,
		0,
		0
	];
	for (let s = 0; s < e.rows; s++) {
		let c = [], [l, u] = [0, 0];
		for (let t = 0; t < e.columns; t++) {
			if (ke(e, s, t)) continue;
			let r = e.values[s * e.columns + t] ?? 0;
			u += r, n.has(t) || (c.push(t), l += r);
		}
		if (u <= 0 || (o += 1, a += l / u, l <= 1e-6 || c.length === 0)) continue;
		i += 1;
		let d = t === null ? NaN : s + t, [f, p, m] = [
			0,
			0,
			0
		], h = (t) => c.includes(t) ? (e.values[s * e.columns + t] ?? 0) / l : 0;
		for (let t of c) {
			let n = (e.values[s * e.columns + t] ?? 0) / l;
			n > 0 && (f -= n * Math.log(n)), p = Math.max(p, n), m += n * Math.abs(d - t);
		}
		r.entropy += c.length > 1 ? f / Math.log(c.length) : 0, r.most += p, r.first += h(c[0] ?? -1), r.last += h(c.at(-1) ?? -1), r.distance += m, t !== null && (r.self += h(d), r.previous += h(d - 1), r.next += h(d + 1));
	}
	let s = (e) => i === 0 ? NaN : e / i, c = (e) => t === null ? NaN : s(e);
	return {
		normalized_entropy: s(r.entropy),
		max_weight: s(r.most),
		first_weight: s(r.first),
		last_weight: s(r.last),
		distance: c(r.distance),
		self_weight: c(r.self),
		previous_weight: c(r.previous),
		next_weight: c(r.next),
		left: o === 0 ? NaN : a / o,
		queries: i
	};
}
function Fa(e, t = /* @__PURE__ */ new Set()) {
	let { rows: n, columns: r, values: i } = e, a = new Float32Array(n), o = new Float32Array(r);
	for (let e = 0; e < n; e++) {
		let [n, s] = [0, 0];
		for (let a = 0; a < r; a++) {
			let o = i[e * r + a] ?? NaN;
			Number.isNaN(o) || t.has(a) || (n += o, s += 1);
		}
		for (let s = 0; s < r && n > 1e-6; s++) {
			let c = (i[e * r + s] ?? NaN) / n;
			Number.isNaN(c) || t.has(s) || (c > 0 && (a[e] = (a[e] ?? 0) - c * Math.log(c)), o[s] = (o[s] ?? 0) + c);
		}
		s > 1 && (a[e] = (a[e] ?? 0) / Math.log(s));
	}
	return {
		entropy: a,
		received: o
	};
}
function Ia(e, t) {
	let n = new Float32Array(e.values.length), [r, i, a] = [
		0,
		0,
		0
	], [o, s, c, l, u] = [
		0,
		0,
		0,
		0,
		0
	];
	for (let d = 0; d < e.rows; d++) {
		let [f, p] = [0, 0];
		for (let r = 0; r < e.columns; r++) {
			let i = d * e.columns + r, [m, h] = [e.values[i] ?? NaN, t.values[i] ?? NaN];
			if (Number.isNaN(m) && Number.isNaN(h)) {
				n[i] = NaN;
				continue;
			}
			let [g, _] = [Number.isNaN(m) ? 0 : m, Number.isNaN(h) ? 0 : h];
			n[i] = g - _, f += Math.abs(g - _), p += 1, a += 1, o += g, s += _, c += g * g, l += _ * _, u += g * _;
		}
		p !== 0 && (r += f / 2, i += 1);
	}
	let d = (e, t) => e - t * t / a, f = Math.sqrt(d(c, o) * d(l, s));
	return {
		moved: i === 0 ? NaN : r / i,
		correlation: f > 1e-12 ? (u - o * s / a) / f : NaN,
		matrix: {
			rows: e.rows,
			columns: e.columns,
			values: n
		}
	};
}
function La(e, t, n) {
	let { normalized_entropy: r, max_weight: i, queries: a } = e;
	if (a === 0 || Number.isNaN(r)) return [`${t} has no query that looks at anything${n ? " that is not set aside" : ""}.`];
	let o = [`${t} is ${r < .35 ? "sharp" : r > .8 ? "diffuse" : "neither sharp nor diffuse"}: its largest weight is ${F(i)} on average, its entropy ${F(r)} of the most.`], [s, c] = [
		[e.previous_weight, "the token before"],
		[e.next_weight, "the token after"],
		[e.self_weight, "the token itself"],
		[e.first_weight, "the first token"],
		[e.last_weight, "the last token"]
	].filter(([e]) => Number.isFinite(e)).reduce((e, t) => t[0] > e[0] ? t : e, [0, ""]);
	return s >= .3 ? o.push(`It looks mostly at ${c}: ${F(s)} of its attention.`) : Number.isFinite(e.distance) ? o.push(`It looks ${e.distance.toFixed(1)} tokens away on average, at no one place first of all.`) : o.push("It looks at no one place first of all."), n && o.push(`Set aside were ${F(1 - e.left)} of its attention.`), o;
}
// src/compare-panel.tsx
function Ra() {
	let e = J(), { now: t, theme: n } = e, r = t.beside.value, i = t.model.value?.sources ?? [], a = t.answer.value?.layers ?? [], o = e.layer.value, s = t.scale.value, c = (t, n = null) => /* @__PURE__ */ O("div", { class: "compare" }, /* @__PURE__ */ O("div", { class: "aside" }, /* @__PURE__ */ O("h3", null, "Two heads side by side"), i.length > 1 && /* @__PURE__ */ O("label", null, "With", " ", /* @__PURE__ */ O("select", {
		id: "beside",
		value: String(r ?? ""),
		onChange: ({ currentTarget: { value: t } }) => e.set({ beside: t === "" ? null : Number(t) })
	}, /* @__PURE__ */ O("option", { value: "" }, "a selected head"), i.map((t, n) => n !== e.door.source && /* @__PURE__ */ O("option", {
		key: n,
		value: String(n)
	}, t)))), r === null && /* @__PURE__ */ O(ja, null), n), t), l = (e) => c(/* @__PURE__ */ O("p", { class: "hint empty" }, e)), [u, d] = e.heads.value, f = (e, { layer: t, head: n }) => {
		let o = a[t], s = r === null ? "" : `${i[e ?? 0]}: `;
		return o === void 0 ? "" : s + Y(o, n);
	}, [p, m] = [e.weights.value, null], h;
	if (r !== null) {
		let n = e.beside.found.value;
		if (n instanceof P) return l(n.message);
		m = n;
		let i = {
			layer: t.layer.value,
			head: t.head.value
		};
		h = [f(e.door.source, i), f(r, i)];
	} else {
		if (u === void 0 || d === void 0) return l("Select a second head in the grid of heads: its map stands here, and the difference of the two.");
		if (!e.alike(d)) return l("The two maps have other rows and keys, so there is no difference to show. Select a head of a layer with the same texts.");
		[p, m] = [e.matrixOf(u), e.matrixOf(d)], h = [f(null, u), f(null, d)];
	}
	if (o === null || p === null || m === null || p === void 0 || m === void 0 || p.values.length !== m.values.length) return l("The weights of the second head are on their way.");
	let g = t.overview.value?.rightToLeft.has(t.layer.value) ?? !1, { moved: _, correlation: v, matrix: y } = Ia(p, m), b = Math.max(y.values.reduce((e, t) => Math.max(e, Math.abs(t) || 0), 0), .01), x = [
		{
			share: 0,
			text: `−${F(b)}`
		},
		{
			share: .5,
			text: "the same"
		},
		{
			share: 1,
			text: `+${F(b)}`
		}
	];
	return c(/* @__PURE__ */ O(A, null, [p, m].map((e, t) => /* @__PURE__ */ O(za, {
		key: t,
		title: h[t] ?? "",
		matrix: e,
		ramp: n.ramp,
		shade: Le(s, e, o.keys),
		ticks: ze(s, Me(e)),
		flipped: g
	})), /* @__PURE__ */ O(za, {
		title: "the first − the second",
		matrix: y,
		ramp: n.differences,
		shade: (e) => .5 + e / (2 * b),
		ticks: x,
		flipped: g
	})), /* @__PURE__ */ O("p", { id: "compared" }, "On average ", F(_), " of a row’s attention would have to move to make the two alike.", Number.isFinite(v) && ` Their weights correlate by ${v.toFixed(2).replace("-", "−")}.`));
}
function za({ title: e, matrix: t, ramp: n, shade: r, ticks: i, flipped: a }) {
	let { theme: o } = J(), s = U(null), c = va((e, c, { clientWidth: l, clientHeight: u }) => {
		let d = s.current?.getContext("2d");
		if (!d || s.current === null || l === 0 || u === 0) return;
		let f = Math.min(l / t.columns, u / t.rows), [p, m] = [t.columns * f, t.rows * f];
		ca(e, p, m), c.fillStyle = aa(c, o.tone("line")) ?? o.tone("line"), c.fillRect(0, 0, p, m), a && (c.translate(p, 0), c.scale(-1, 1)), c.imageSmoothingEnabled = !1;
		let h = ia([{
			matrix: t,
			shade: r
		}], n);
		h.width > 0 && c.drawImage(h, 0, 0, p, m), ca(s.current, l, 28), sa(d, n, i, {
			x: 0,
			y: 0,
			width: l
		}, o.tone("quiet"), o.font);
	}, [
		t,
		o.changes.value,
		r,
		a
	]);
	return /* @__PURE__ */ O("figure", { class: "small-map" }, /* @__PURE__ */ O("figcaption", null, e), /* @__PURE__ */ O("div", { class: "small-room" }, /* @__PURE__ */ O("canvas", {
		ref: c,
		role: "img",
		"aria-label": `Map: ${e}`
	})), /* @__PURE__ */ O("canvas", {
		ref: s,
		role: "img",
		"aria-label": `Colours: ${i.map(({ text: e }) => e).join(", ")}`
	}));
}
// src/dom.ts
function Ba(e, t) {
	e.textContent !== t && (e.textContent = t);
}
function Z(e, t, n) {
	e.style.getPropertyValue(t) !== n && e.style.setProperty(t, n);
}
function Va(e, t) {
	let n = new Set(t);
	for (let t of [...e.childNodes]) n.has(t) || t.remove();
	let r = e.firstChild;
	for (let n of t) n === r ? r = r.nextSibling : e.insertBefore(n, r);
}
// src/bars.ts
var Ha = 26, Ua = 260, Wa = 24, Ga = 8, Ka = class {
	constructor(e) {
		this.list = e, this.labels = [], this.weights = [], this.indices = [], this.top = -1, this.shade = null, this.before = document.createElement("li"), this.after = document.createElement("li"), this.lines = /* @__PURE__ */ new Map(), this.size = {
			width: 0,
			height: 0
		}, this.offset = 0, this.scrolling = !1;
		for (let e of [this.before, this.after]) e.className = "room", e.ariaHidden = "true";
		e.addEventListener("scroll", () => {
			let t = this.each === null ? e.scrollTop : e.scrollLeft;
			this.scrolling || Math.abs(t - this.offset) < 1 || (this.offset = t, this.render());
		}), new ResizeObserver(() => {
			this.size = {
				width: e.clientWidth,
				height: e.clientHeight
			}, this.offset = this.each === null ? e.scrollTop : e.scrollLeft, this.bring();
		}).observe(e), this.size = {
			width: e.clientWidth,
			height: e.clientHeight
		};
	}
	draw(e, t, n, r) {
		[this.labels, this.weights, this.shade] = [
			e,
			t,
			r
		], this.indices = n === "weight" ? Pe(t) : t.map((e, t) => t), this.top = Ne(t, 1)[0] ?? -1, this.bring();
	}
	bring() {
		let { step: e, size: t, room: n } = this.measures, r = Math.floor(this.indices.indexOf(this.shade?.partner ?? this.top) / t) * e, i = r < this.offset || r + e > this.offset + n, a = Math.max(Math.ceil(this.indices.length / t) * e - n, 0);
		i && (this.offset = Math.min(Math.max(r + e / 2 - n / 2, 0), a)), this.render(), i && !this.scrolling && (this.scrolling = !0, requestAnimationFrame(() => this.scroll()));
	}
	scroll() {
		this.scrolling = !1, this.each === null ? this.list.scrollTop = this.offset : this.list.scrollLeft = this.offset;
	}
	get each() {
		let { width: e, height: t } = this.size;
		return e >= 2 * Ua ? Math.max(Math.floor(t / Ha), 1) : null;
	}
	get measures() {
		let { each: e } = this;
		return e === null ? {
			step: Ha,
			size: 1,
			room: Math.max(this.size.height, 208)
		} : {
			step: Ua,
			size: e,
			room: this.size.width
		};
	}
	render() {
		let { list: e, indices: t, each: n } = this, { step: r, size: i, room: a } = this.measures, [o, s] = [Math.ceil(t.length / i), n === null ? Ga : 1], c = Math.min(Math.max(Math.floor(this.offset / r) - s, 0), Math.max(o - 1, 0)), l = Math.min(c + Math.ceil(a / r) + 2 * s, o);
		e.classList.toggle("columns", n !== null), Z(e, "--lines", String(i)), Z(e, "grid-template-columns", c > 0 ? `${c * r - Wa}px` : "none"), Z(this.before, "--room", `${c * r}px`), Z(this.after, "--room", `${(o - l) * r}px`);
		let u = this.lines;
		this.lines = new Map(t.slice(c * i, l * i).map((e) => [e, u.get(e) ?? qa()]));
		let d = c * i;
		for (let [e, t] of this.lines) this.fill(t, e, ++d);
		let f = [...this.lines.values()].map(({ element: e }) => e);
		Va(e, [
			...c > 0 ? [this.before] : [],
			...f,
			...l < o ? [this.after] : []
		]);
	}
	fill(e, t, n) {
		let { shade: r, weights: i, labels: a } = this, o = i[t] ?? 0, s = a[t], { element: c, word: l, track: u, number: d } = e;
		Ba(l, s?.text ?? ""), Ba(d, I(o));
		let f = r && Xi(qi(r.ramp, r.dark(o, t))), p = [
			t === this.top && o > 0,
			t === r?.partner,
			s?.special ?? !1
		], m = `${p.join()} ${n} ${i.length}`;
		m !== e.look && (e.look = m, [
			"top",
			"partner",
			"special"
		].forEach((e, t) => c.classList.toggle(e, p[t] ?? !1)), [c.ariaPosInSet, c.ariaSetSize] = [String(n), String(i.length)]);
		let h = s?.whole?.slice(0, 2e4) ?? "";
		l.title !== h && (l.title = h), Z(u, "background-size", `${Math.round(o * 1e4) / 100}% 100%`), f !== e.paint && (e.paint = f, u.style.setProperty("background-image", `linear-gradient(${f}, ${f})`));
	}
};
function qa() {
	let e = document.createElement("li");
	e.className = "line";
	let t = (t, n) => {
		let r = document.createElement(t);
		return r.className = n, e.append(r), r;
	};
	return {
		element: e,
		word: t("bdi", "word"),
		track: t("span", "track"),
		number: t("span", "number"),
		look: "",
		paint: null
	};
}
// src/token-row.ts
var Ja = 120, Ya = 64, Xa = class {
	constructor(e, t) {
		this.row = e, this.handlers = t, this.labels = [], this.first = 0, this.spoken = () => "", this.words = /* @__PURE__ */ new Map(), this.reached = null, this.from = 0, this.shades = null, this.ramp = null, e.addEventListener("keydown", (e) => this.moved(e));
	}
	fill(e, t, n, r) {
		let i = t === this.first && e.length === this.labels.length && e.every((e, t) => St(e, this.labels[t]));
		if ([this.labels, this.first, this.spoken] = [
			e,
			t,
			r
		], this.row.dir !== n && (this.row.dir = n), i) for (let [e, { button: t }] of this.words) t.ariaLabel = r(e);
		else this.words.clear(), this.build(0);
	}
	shade(e, t) {
		let n = t !== this.ramp;
		[this.shades, this.ramp] = [e, t], e.active !== null && !this.row.matches(":focus-within") && (this.bring(e.active), this.reach(e.active)), this.paint(n);
	}
	paint(e = !1) {
		let { shades: t, ramp: n } = this;
		if (t !== null && n !== null) for (let [r, i] of this.words) {
			let a = t.weights?.[r] ?? null, o = a === null ? "" : Fe(a), s = a === null ? 0 : Math.round(t.dark(a, r) * Ya) / Ya, c = [
				r === t.active,
				r === t.partner,
				r === t.pinned
			], l = `${a === null ? "" : s} ${o} ${c.join()}`;
			if (l === i.look && !e) continue;
			i.look = l;
			let u = a === null ? null : qi(n, s), { button: d, share: f } = i;
			f.dataset.share !== o && (f.dataset.share = o), d.style.setProperty("background-color", u ? Xi(u) : "");
			let p = u ? Zi(u) : "";
			p !== i.ink && d.style.setProperty("color", i.ink = p), d.classList.toggle("active", c[0]), d.classList.toggle("partner", c[1]);
			let m = String(c[2]);
			d.ariaPressed !== m && (d.ariaPressed = m);
		}
	}
	build(e) {
		let t = Math.max(this.labels.length - Ja, 0);
		this.from = Math.min(Math.max(e, 0), t);
		let n = this.labels.slice(this.from, this.from + Ja), r = this.words;
		this.words = new Map(n.map((e, t) => {
			let n = this.first + this.from + t;
			return [n, r.get(n) ?? this.word(e, n)];
		}));
		let [i, a] = [this.from, this.labels.length - this.from - n.length], o = (e) => {
			let t = document.createElement("span");
			return t.className = "more", t.textContent = `${e.toLocaleString("en")} more`, e > 0 ? [t] : [];
		}, s = [...this.words.values()].map(({ button: e }) => e);
		Va(this.row, [
			...o(i),
			...s,
			...o(a)
		]), this.reach(this.first + this.from);
	}
	bring(e) {
		let t = e - this.first;
		t < 0 || t >= this.labels.length || this.words.has(e) || this.build(t - Math.floor(Ja / 2));
	}
	word(e, t) {
		let n = document.createElement("button");
		n.type = "button", n.className = "token", n.classList.toggle("begins", e.begins), n.classList.toggle("special", e.special), n.classList.toggle("continues", this.labels[t - this.first + 1]?.begins === !1), n.tabIndex = -1, n.ariaLabel = this.spoken(t);
		let r = document.createElement("bdi");
		r.textContent = e.text;
		let i = document.createElement("span");
		return i.className = "share", i.ariaHidden = "true", n.append(r, i), e.whole !== void 0 && (n.title = e.whole.slice(0, 2e4)), n.addEventListener("pointerenter", () => this.handlers.point(t)), n.addEventListener("focus", () => {
			this.reach(t), this.handlers.point(t);
		}), n.addEventListener("click", () => this.handlers.pin(t)), {
			button: n,
			share: i,
			look: "",
			ink: ""
		};
	}
	reach(e) {
		let t = this.words.get(e)?.button ?? null;
		t !== this.reached && (this.reached !== null && (this.reached.tabIndex = -1), t !== null && (t.tabIndex = 0), this.reached = t);
	}
	moved(e) {
		if (e.ctrlKey || e.altKey || e.metaKey) return;
		let t = [...this.words].find(([, { button: e }]) => e.matches(":focus"))?.[0];
		if (t === void 0) return;
		let n = getComputedStyle(this.row).direction === "rtl" ? "ArrowLeft" : "ArrowRight", [r, i] = [t - this.first, this.labels.length - 1], a = {
			ArrowLeft: n === "ArrowLeft" ? r + 1 : r - 1,
			ArrowRight: n === "ArrowRight" ? r + 1 : r - 1,
			Home: 0,
			End: i
		}[e.key];
		if (a === void 0) return;
		e.preventDefault();
		let o = Math.min(Math.max(a, 0), i);
		this.bring(this.first + o), this.paint(), this.words.get(this.first + o)?.button.focus();
	}
}, Za = [["target", "looks at"], ["source", "is looked at"]];
function Qa({ matrix: e }, { side: t, index: n }) {
	return t === "target" ? Ae(e, n) : je(e, n);
}
function $a({ rowSpans: e, keySpans: t }, { side: n, index: r, partner: i }) {
	let [a, o] = n === "target" ? [e, t] : [t, e], s = {
		side: n,
		index: Qt(a, r)
	};
	return i === void 0 ? s : {
		...s,
		partner: Qt(o, i)
	};
}
function eo(e, t) {
	return (n, r) => e(n, t.side === "target" ? t.index : r);
}
function to(e, t) {
	let n = e.findIndex(({ to: e }) => e > t.from), r = e.findIndex(({ from: e }) => e >= t.to);
	return {
		from: Math.max(n, 0),
		to: r < 0 ? e.length : r
	};
}
function no(e) {
	let [t, n] = [e.now.sheet.value, e.now.view.value];
	if (t === null || n === null || e.layer.value?.within !== !0) return !1;
	let r = (e, t) => e.from === t.from && e.to === t.to, { excerpt: i, rows: a, keys: o } = t;
	return !r(i.rows, i.keys) || !r(n.rows, n.keys) ? !1 : a.every((e, t) => e.text === o[t]?.text);
}
function ro() {
	let e = J(), { now: t } = e, n = t.sheet.value;
	if (n === null) return null;
	let r = no(e), i = vi(e.kind), a = n.rows.some(({ begins: e }) => !e) || n.keys.some(({ begins: e }) => !e);
	return /* @__PURE__ */ O(A, null, /* @__PURE__ */ O("div", { class: "pane-head" }, /* @__PURE__ */ O("h2", null, "Words"), /* @__PURE__ */ O("div", { class: "switches" }, r && /* @__PURE__ */ O(ui, {
		name: "side",
		legend: "A word is shown as",
		options: Za,
		value: t.side.value,
		choose: (t) => {
			let { pointed: n, pinned: r } = e.state, i = (e) => e && {
				side: t,
				index: e.index
			};
			e.set({
				side: t,
				pointed: i(n),
				pinned: i(r)
			});
		}
	}), /* @__PURE__ */ O("label", {
		class: "check",
		hidden: !a,
		title: Wt
	}, /* @__PURE__ */ O("input", {
		id: "joined",
		type: "checkbox",
		checked: t.joined.value,
		onChange: (t) => e.set({ joined: t.currentTarget.checked })
	}), " ", "whole words"))), n.coarse ? /* @__PURE__ */ O("p", { class: "hint empty" }, "Words stand here when the map is near enough: click a cell, or choose a part by its numbers.") : /* @__PURE__ */ O("div", {
		class: "texts",
		id: "rows"
	}, r ? /* @__PURE__ */ O(io, {
		title: "Text",
		side: null,
		id: "target"
	}) : /* @__PURE__ */ O(A, null, /* @__PURE__ */ O(io, {
		title: i.source,
		side: "source",
		id: "source"
	}), /* @__PURE__ */ O(io, {
		title: i.target,
		side: "target",
		id: "target"
	})), t.joined.value && a && /* @__PURE__ */ O("p", { class: "hint" }, "Pieces joined to words: over the pieces of a word that is looked at the weights are summed, over those of a word that looks their mean is taken.", " The map stays token by token.")), /* @__PURE__ */ O("p", { class: "caution" }, "These numbers say where the model looked, not why it chose a word: a word can matter without being looked at, and be looked at without mattering."));
}
function io({ title: e, side: t, id: n }) {
	let r = J(), i = U(null), a = U(null), o = () => t ?? r.state.side;
	H(() => {
		if (i.current === null) return;
		let e = (e) => {
			let t = r.reading.peek(), n = o() === "target" ? t?.rowSpans : t?.keySpans;
			return {
				side: o(),
				index: n?.[e]?.from ?? e
			};
		};
		a.current = new Xa(i.current, {
			point: (t) => r.point(e(t)),
			pin: (t) => r.pin(e(t))
		}), s(), c();
	}, []);
	let s = () => {
		let [e, n, i] = [
			r.reading.value,
			r.now.sheet.value,
			r.now.view.value
		], o = t ?? r.now.side.value;
		if (e === null || n === null) return;
		let [s, c] = o === "target" ? [e.rows, e.rowSpans] : [e.keys, e.keySpans], l = (o === "target" ? e.keys : e.rows).map(({ text: e }) => e), u = o === "target" ? "rows" : "keys", d = n.excerpt[u].from, f = i?.[u] ?? n.excerpt[u], { from: p, to: m } = to(c, {
			from: f.from - d,
			to: f.to - d
		});
		a.current?.fill(s.slice(p, m), p, zt(s), (t) => _i({
			side: o,
			index: t
		}, s[t]?.text ?? "", Qa(e, {
			side: o,
			index: t
		}), l));
	}, c = () => {
		let { now: e, theme: n } = r;
		n.changes.value;
		let i = r.reading.value, o = r.layer.value, s = e.pinned.value, c = r.place.value, l = t ?? e.side.value;
		if (i === null || o === null) return;
		let u = c && $a(i, c), d = t === null ? u !== null : u?.side === t, f = Le(e.scale.value, i.matrix, o.keys);
		a.current?.shade({
			weights: u === null || d && t !== null ? null : Qa(i, u),
			dark: u === null ? () => 0 : eo(f, u),
			active: d ? u?.index ?? null : null,
			pinned: s !== null && s.side === l ? $a(i, s).index : null,
			partner: u === null || d && t !== null ? null : u.partner ?? null
		}, n.ramp);
	};
	return q(s), q(c), /* @__PURE__ */ O(A, null, /* @__PURE__ */ O("h3", { id: `${n}-title` }, e), /* @__PURE__ */ O("div", {
		id: n,
		class: "tokens",
		ref: i,
		role: "group",
		"aria-labelledby": `${n}-title`,
		dir: "auto"
	}));
}
// src/distribution-panel.tsx
var ao = 3, oo = [["sentence", "as in the text"], ["weight", "largest first"]];
function so() {
	let e = J(), t = U(null), n = U(null), r = U(null), i = U(null), a = U(null), o = U(null), { now: s } = e;
	H(() => {
		t.current !== null && (n.current = new Ka(t.current)), c();
	}, []);
	let c = () => {
		e.theme.changes.value;
		let [t, c, l] = [
			s.sheet.value,
			s.view.value,
			e.layer.value
		], u = e.reading.value, d = e.place.value, [f, p, m] = [
			s.scale.value,
			s.order.value,
			e.kind
		];
		if (u === null || t === null || l === null || d === null || t.coarse) return;
		let h = $a(u, d), g = h.side === "target", [_, v, y] = g ? [
			u.rows,
			u.keys,
			u.keySpans
		] : [
			u.keys,
			u.rows,
			u.rowSpans
		], b = _[h.index], x = g ? "keys" : "rows", S = t.excerpt[x].from, ee = c?.[x] ?? t.excerpt[x], { from: C, to: te } = to(y, {
			from: ee.from - S,
			to: ee.to - S
		}), w = Qa(u, h).slice(C, te), ne = v.slice(C, te), T = (e, t) => {
			e !== null && ([e.textContent, e.hidden] = [t, t === ""]);
		};
		T(r.current, Di(h, b?.text ?? "", m)), T(i.current, Oi(h, m, w)), T(o.current, b?.whole === void 0 ? "" : `In full: ${b.whole}`);
		let E = Pe(w).slice(0, ao).filter((e) => (w[e] ?? 0) >= .005).map((e) => `${R(ne[e]?.text ?? "")} ${F(w[e] ?? 0)}`);
		T(a.current, E.length > 0 ? `Most: ${E.join(", ")}.`.replace(/ %/g, "\xA0%") : "");
		let D = eo(Le(f, u.matrix, l.keys), h);
		n.current?.draw(ne, w, p, {
			ramp: e.theme.ramp,
			dark: (e, t) => D(e, t + C),
			partner: h.partner === void 0 ? null : h.partner - C
		});
	};
	q(c);
	let l = s.sheet.value?.coarse ?? !0;
	return /* @__PURE__ */ O(A, null, /* @__PURE__ */ O("p", {
		class: "hint empty",
		hidden: !l
	}, "The numbers of a word stand here when the map is near enough to have words."), /* @__PURE__ */ O("section", {
		id: "distribution",
		class: "distribution",
		"aria-labelledby": "distribution-title",
		hidden: l
	}, /* @__PURE__ */ O("div", { class: "aside" }, /* @__PURE__ */ O("h3", {
		id: "distribution-title",
		ref: r
	}), /* @__PURE__ */ O("p", {
		id: "distribution-top",
		class: "top-words",
		ref: a
	}), /* @__PURE__ */ O("p", {
		id: "distribution-note",
		class: "note",
		ref: i
	}), /* @__PURE__ */ O("p", {
		id: "distribution-whole",
		class: "note whole",
		ref: o,
		hidden: !0
	}), /* @__PURE__ */ O(ui, {
		name: "order",
		legend: "Order",
		options: oo,
		value: s.order.value,
		choose: (t) => e.set({ order: t })
	})), /* @__PURE__ */ O("ol", {
		id: "bars",
		class: "bars",
		ref: t,
		tabIndex: 0,
		"aria-labelledby": "distribution-title"
	})));
}
// src/doubt.ts
function co(e, t = null) {
	let { answer: n, sheet: r, layer: i, head: a, pinned: o, output: s, weight: c, erased: l } = e, [u, d] = [n?.doubt, n?.layers[i]];
	if (!u || d === void 0 || n?.map == null) return null;
	let f = r === null || r.coarse || r.layer !== i ? null : o, p = f?.side === "target", m = p ? f.index : f?.partner, h = f === null ? void 0 : p ? f.partner : f.index, g = m === void 0 || r === null ? null : m + r.excerpt.rows.from, _ = h === void 0 || r === null ? null : h + r.excerpt.keys.from, v = u.rows[i] ?? !1, y = (s !== null && s < u.outputs.length ? s : null) ?? (v && g !== null ? g : u.first), b = g ?? (v ? y : 0), x = r?.layer === i ? r.head ?? a : a;
	return {
		layer: i,
		head: d.heads === 1 ? 0 : x,
		output: y,
		row: b,
		key: _,
		weight: c / 100,
		erased: l === null ? uo(n, i, _, t, r?.excerpt.keys.from ?? 0) : lo(l, u.source.length)
	};
}
function lo(e, t) {
	return e < t ? {
		from: e,
		to: e + 1
	} : null;
}
function uo(e, t, n, r, i) {
	if (n === null || r === null || e.doubt?.keys[t] !== !0) return null;
	let a = r.find((e) => n - i >= e.from && n - i < e.to);
	return a === void 0 ? null : {
		from: a.from + i,
		to: a.to + i
	};
}
function fo(e, { layer: t, head: n, output: r, row: i }) {
	return [
		e,
		t,
		n,
		r,
		i
	].join(" ");
}
function po(e) {
	if (e == null) return "−∞";
	let t = Math.abs(e), n = t >= 9.995 ? t.toFixed(1) : t.toFixed(2);
	return Number(n) === 0 ? "0.00" : `${e < 0 ? "−" : "+"}${n}`;
}
function mo(e) {
	return Math.abs(e) < .005 && e !== 0 ? e < 0 ? "−0.00" : "+0.00" : po(e);
}
function ho({ name: e }, t, n, { doubt: r }, i) {
	if (e === "permuted") return `permuted, ${t.draws} draws`;
	if (e === "weight") return `“${R(i.key(t.key))}” ${I(t.weights[t.key] ?? 0)} → ${F(n.weight)}`;
	if (e !== "erased") return e === "adversary" ? "other weights" : e;
	let [a, o] = t.erased ?? [0, 0];
	return `without “${R(go((r?.source.slice(a, o) ?? []).join("")))}”`;
}
function go(e) {
	return e.replace(/[▁Ġ]/g, " ").trim() || e;
}
function _o({ divergence: e, at_most: t, distance: n, whole: r }) {
	let i = t > 0 ? Math.round(100 * e / t) : 0;
	return `${r ? "All rows of the head" : "This row"} look elsewhere: ${e.toFixed(2)} nats of at most ${t.toFixed(2)} (${i} %, Jensen–Shannon). The output moves by ${I(n)} of probability at the most.`;
}
var vo = 40;
function yo({ weights: e, seen: t, gradient: n }) {
	let r = e.flatMap((e, r) => t[r] === !0 ? [{
		key: r,
		weight: e,
		gradient: n?.[r] ?? null
	}] : []), i = Math.max(...r.map(({ gradient: e }) => Math.abs(e ?? 0)), 1e-12), a = (e) => Math.max(e.weight, Math.abs(e.gradient ?? 0) / i), o = [...r].sort((e, t) => a(t) - a(e)).slice(0, vo);
	return {
		shown: o.sort((e, t) => e.key - t.key),
		left: r.length - o.length
	};
}
// src/doubt-panel.tsx
var bo = 60;
function xo() {
	let e = J(), { now: t, door: n } = e, r = t.answer.value, i = K(null), a = e.reading.value, o = co({
		answer: r,
		sheet: t.sheet.value,
		layer: t.layer.value,
		head: t.head.value,
		pinned: t.pinned.value,
		output: t.output.value,
		weight: t.weight.value,
		erased: t.erased.value
	}, t.joined.value ? a?.keySpans ?? null : null), s = o === null ? "" : JSON.stringify([r?.map, o]), { came: c, problem: l, waiting: u } = _a(r?.map == null ? null : o, s, (e, t) => n.doubt?.(r?.map ?? "", e, t)), d = o === null || r?.map == null ? "" : fo(r.map, o), f = i.value?.own === d && d !== "" ? i.value : null, { came: p, problem: m, waiting: h } = _a(f && d, f, (e, t) => o === null ? void 0 : n.adversary?.(r?.map ?? "", o, t));
	if (o === null || r === null || !r.doubt) return null;
	let g = r.layers[o.layer], _ = t.sheet.value, v = (e) => (t) => _ === null || _.coarse ? `${t}` : _[e][t - _.excerpt[e].from]?.text ?? `${t}`, y = {
		row: v("rows"),
		key: v("keys")
	}, b = c.value, x = p.value?.asked === d ? p.value.found : null;
	return /* @__PURE__ */ O("div", { class: "doubt" }, /* @__PURE__ */ O("div", { class: "aside" }, /* @__PURE__ */ O("h3", null, "Does the output need ", g === void 0 ? "this head" : Y(g, o.head), "?"), /* @__PURE__ */ O("label", null, "Output", " ", /* @__PURE__ */ O(So, {
		id: "doubted",
		names: r.doubt.outputs,
		value: o.output,
		choose: (t) => e.set({ output: t })
	})), /* @__PURE__ */ O("label", null, /* @__PURE__ */ O("span", null, "Weight of “", /* @__PURE__ */ O("bdi", null, y.key(b?.found.key ?? o.key ?? 0)), "”"), " ", /* @__PURE__ */ O("input", {
		id: "edited",
		type: "range",
		min: 0,
		max: 100,
		value: t.weight.value,
		"aria-valuetext": `${t.weight.value} %`,
		onInput: (t) => e.set({ weight: Number(t.currentTarget.value) })
	}), " ", /* @__PURE__ */ O("span", { class: "number" }, t.weight.value, " %")), /* @__PURE__ */ O("label", null, "Without", " ", /* @__PURE__ */ O(So, {
		id: "erased",
		names: r.doubt.source,
		value: b?.found.erased?.[0] ?? null,
		choose: (t) => e.set({ erased: t })
	})), /* @__PURE__ */ O("p", { class: "note" }, "A small change says that this output does not need these weights. It does not say that the head is useless: other heads may stand in for it, and other outputs may need it."), /* @__PURE__ */ O(ci, { said: l.value || m.value })), b === null ? /* @__PURE__ */ O("p", {
		class: "hint empty",
		hidden: l.value !== ""
	}, "Reading the text again…") : /* @__PURE__ */ O(A, null, /* @__PURE__ */ O("div", {
		class: u.value ? "table-room stale" : "table-room",
		tabIndex: 0,
		role: "region",
		"aria-label": "What the output becomes",
		"aria-busy": u.value
	}, /* @__PURE__ */ O(Co, {
		...b,
		effects: b.found,
		names: y,
		other: x
	}), /* @__PURE__ */ O("p", { class: "note" }, "The model reads this text again with other weights in ", o.head === null ? "all heads of this layer" : "this head", ", in all its rows. All else stays, also what was written before this output. ", /* @__PURE__ */ O("b", null, "Uniform"), ": each query looks at all its keys alike. ", /* @__PURE__ */ O("b", null, "Permuted"), ": each query’s weights are shuffled among its keys; mean ± standard deviation. ", /* @__PURE__ */ O("b", null, "Off"), ": the head reads zeros. ", /* @__PURE__ */ O("b", null, "A weight set by hand"), " takes from the rest of its row in proportion, so that the row keeps its sum. ", /* @__PURE__ */ O("b", null, "Without"), ": the text is read without these tokens."), /* @__PURE__ */ O("p", { class: "seek" }, f !== null && h.value ? /* @__PURE__ */ O(A, null, /* @__PURE__ */ O("span", { role: "status" }, "Searching for other weights of the same output…"), " ", /* @__PURE__ */ O("button", {
		type: "button",
		onClick: () => i.value = null
	}, "Stop")) : x === null ? /* @__PURE__ */ O("button", {
		id: "adversary",
		type: "button",
		onClick: () => i.value = { own: d }
	}, "Search for other weights of the same output") : /* @__PURE__ */ O("span", { role: "status" }, _o(x)))), /* @__PURE__ */ O(To, {
		...b,
		effects: b.found,
		names: y,
		other: x
	})));
}
function So({ id: e, names: t, value: n, choose: r }) {
	let i = Math.min(Math.max((n ?? 0) - bo / 2, 0), Math.max(t.length - bo, 0));
	return /* @__PURE__ */ O(di, {
		id: e,
		value: n === null ? "" : String(n),
		options: [...n === null ? [["", "nothing yet"]] : [], ...t.slice(i, i + bo).map((e, t) => [String(i + t), `${i + t}: ${R(go(e))}`])],
		choose: (e) => {
			e !== "" && r(Number(e));
		}
	});
}
function Co({ asked: e, effects: t, names: n, other: r }) {
	let i = J().now.answer.value;
	if (i === null) return null;
	let a = [...t.changes, ...r?.changes ?? []];
	return /* @__PURE__ */ O("table", { id: "effects" }, /* @__PURE__ */ O("caption", null, "What becomes of the output “", /* @__PURE__ */ O("bdi", null, go(t.output)), "”"), /* @__PURE__ */ O("thead", null, /* @__PURE__ */ O("tr", null, /* @__PURE__ */ O("th", { scope: "col" }, "change"), /* @__PURE__ */ O("th", {
		scope: "col",
		title: "Change of the logarithm of the probability, in nats"
	}, "Δ log p"), /* @__PURE__ */ O("th", { scope: "col" }, "p"), /* @__PURE__ */ O("th", { scope: "col" }, "five most probable"))), /* @__PURE__ */ O("tbody", null, /* @__PURE__ */ O("tr", null, /* @__PURE__ */ O("th", { scope: "row" }, "as it is"), /* @__PURE__ */ O("td", null), /* @__PURE__ */ O("td", null, I(t.probability)), /* @__PURE__ */ O(wo, {
		top: t.top,
		own: t.output
	})), a.map((r) => /* @__PURE__ */ O("tr", {
		key: r.name,
		"data-change": r.name
	}, /* @__PURE__ */ O("th", { scope: "row" }, ho(r, t, e, i, n)), r.impossible === void 0 ? /* @__PURE__ */ O(A, null, /* @__PURE__ */ O("td", null, po(r.delta), r.spread != null && /* @__PURE__ */ O("small", null, " ± ", r.spread.toFixed(2))), /* @__PURE__ */ O("td", null, I(r.probability ?? 0)), /* @__PURE__ */ O(wo, {
		top: r.top ?? [],
		own: t.output
	})) : /* @__PURE__ */ O("td", {
		colSpan: 3,
		class: "impossible"
	}, r.impossible)))));
}
function wo({ top: e, own: t }) {
	return /* @__PURE__ */ O("td", { class: "five" }, e.map(([e, n], r) => /* @__PURE__ */ O("span", {
		key: r,
		class: e === t ? "own" : void 0
	}, /* @__PURE__ */ O("bdi", null, go(e)), " ", F(n))));
}
function To({ asked: e, effects: t, names: n, other: r }) {
	let { shown: i, left: a } = yo(t), o = Math.max(...i.map(({ gradient: e }) => Math.abs(e ?? 0)), 1e-12);
	return /* @__PURE__ */ O("figure", {
		class: "slopes",
		tabIndex: 0
	}, /* @__PURE__ */ O("figcaption", null, "Row of “", /* @__PURE__ */ O("bdi", null, n.row(e.row)), "”: each ", /* @__PURE__ */ O("b", null, "weight"), r !== null && /* @__PURE__ */ O(A, null, ", the ", /* @__PURE__ */ O("b", null, "other weight")), " and the ", /* @__PURE__ */ O("b", null, "gradient"), " of log p with respect to it"), /* @__PURE__ */ O("ol", { id: "slopes" }, i.map(({ key: e, weight: i, gradient: a }) => /* @__PURE__ */ O("li", {
		key: e,
		class: e === t.key ? "slope partner" : "slope"
	}, /* @__PURE__ */ O("bdi", { class: "word" }, n.key(e)), /* @__PURE__ */ O("span", { class: "track" }, /* @__PURE__ */ O("span", {
		class: "bar",
		style: { width: `${(i * 100).toFixed(2)}%` }
	}), r !== null && /* @__PURE__ */ O("span", {
		class: "bar other",
		style: { width: `${((r.weights[e] ?? 0) * 100).toFixed(2)}%` }
	})), /* @__PURE__ */ O("span", { class: "number" }, I(i)), /* @__PURE__ */ O("span", { class: "track middle" }, a !== null && /* @__PURE__ */ O("span", {
		class: a < 0 ? "bar down" : "bar up",
		style: { width: `${(Math.abs(a) / o * 50).toFixed(2)}%` }
	})), /* @__PURE__ */ O("span", { class: "number" }, a === null ? "–" : mo(a))))), /* @__PURE__ */ O("p", { class: "note" }, a > 0 && `${a} keys of less weight and gradient are left out. `, "A gradient says what a little more weight would do while the other weights stay. Pin a cell of the map to choose a row and a key."));
}
// src/lines-layout.ts
function Eo(e, t, n) {
	let r = [], i = 0, a = e.map((e) => Math.max(e, t) + n);
	for (let e of a) r.push(i), i += e;
	return {
		starts: r,
		sizes: a,
		total: i
	};
}
function Do({ starts: e, total: t }, n) {
	if (n < 0 || n >= t || e.length === 0) return null;
	let [r, i] = [0, e.length - 1];
	for (; r < i;) {
		let t = r + i + 1 >> 1;
		(e[t] ?? 0) <= n ? r = t : i = t - 1;
	}
	return r;
}
function Oo({ starts: e, sizes: t }, n) {
	return (e[n] ?? 0) + (t[n] ?? 0) / 2;
}
function ko(e, t, n) {
	let r = [];
	e.forEach(({ columns: e, values: n }, i) => {
		n.forEach((n, a) => {
			n > 0 && n >= t && r.push({
				row: Math.floor(a / e),
				key: a % e,
				weight: n,
				head: i
			});
		});
	}), r.sort((e, t) => e.weight - t.weight);
	let i = Math.max(r.length - n, 0);
	return {
		lines: r.slice(i),
		left: i
	};
}
// src/lines-view.ts
var Ao = 4e3, jo = 26, Mo = 110, No = 20, Po = 120, Fo = class {
	constructor(e, t, n) {
		this.theme = e, this.room = t, this.handlers = n, this.shown = null, this.lines = [], this.active = null, this.ends = null, this.canvas = document.createElement("canvas"), this.over = document.createElement("canvas"), this.spacer = document.createElement("div"), this.observer = new ResizeObserver(() => this.redraw()), this.spacer.className = "spacer";
		for (let e of [this.canvas, this.over]) e.className = "sticky", e.ariaHidden = "true";
		t.replaceChildren(this.spacer, this.canvas, this.over), t.addEventListener("scroll", () => this.redraw()), t.addEventListener("pointermove", (e) => {
			let t = this.under(e);
			t !== null && n.point(t);
		}), t.addEventListener("click", (e) => {
			let t = this.under(e);
			t !== null && n.pin(t);
		}), t.addEventListener("keydown", (e) => this.pressed(e)), this.observer.observe(t);
	}
	dispose() {
		this.observer.disconnect();
	}
	draw(e) {
		this.shown = e;
		let t = ko(e.heads, e.threshold, Ao);
		this.lines = t.lines, this.handlers.left(t.left), this.ends = null, this.redraw();
	}
	point(e) {
		this.active = e, this.mark();
	}
	get wide() {
		return this.room.clientWidth > 1.3 * this.room.clientHeight;
	}
	under(e) {
		let { ends: t, room: n } = this;
		if (t === null) return null;
		let r = n.getBoundingClientRect(), [i, a] = [e.clientX - r.left, e.clientY - r.top], o = (this.wide ? a / n.clientHeight : i / n.clientWidth) < .5 ? "target" : "source", s = this.place(this.wide ? i + n.scrollLeft : a + n.scrollTop), c = Do(t[o], s - this.shift(o));
		return c === null ? null : {
			side: o,
			index: c
		};
	}
	place(e) {
		return this.wide && this.shown?.rightToLeft === !0 ? this.long - e : e;
	}
	get long() {
		let { ends: e, room: t } = this;
		return Math.max(e?.target.total ?? 0, e?.source.total ?? 0, this.wide ? t.clientWidth : 0);
	}
	shift(e) {
		return this.wide ? (this.long - (this.ends?.[e].total ?? 0)) / 2 : 0;
	}
	pressed(e) {
		let { shown: t, active: n } = this;
		if (t === null || e.ctrlKey || e.altKey || e.metaKey) return;
		let r = n ?? {
			side: "target",
			index: 0
		}, i = this.wide && t.rightToLeft ? -1 : 1, [a, o, s, c] = this.wide ? [
			"ArrowLeft",
			"ArrowRight",
			"ArrowUp",
			"ArrowDown"
		] : [
			"ArrowUp",
			"ArrowDown",
			"ArrowLeft",
			"ArrowRight"
		], l = (e) => e === "target" ? t.rows.length : t.keys.length, u = (e) => {
			let t = Math.min(Math.max(e.index, 0), l(e.side) - 1);
			this.active = {
				side: e.side,
				index: t
			}, this.handlers.point(this.active), this.bring({
				side: e.side,
				index: t
			});
		};
		if (e.key === a) u({
			...r,
			index: r.index - i
		});
		else if (e.key === o) u({
			...r,
			index: r.index + i
		});
		else if (e.key === s) u({
			...r,
			side: "target"
		});
		else if (e.key === c) u({
			...r,
			side: "source"
		});
		else if (e.key === "Enter" || e.key === " ") this.handlers.pin(r);
		else return;
		e.preventDefault();
	}
	bring({ side: e, index: t }) {
		let { ends: n, room: r } = this;
		if (n === null) return;
		let i = Oo(n[e], t) + this.shift(e);
		this.wide ? r.scrollLeft = this.place(i) - r.clientWidth / 2 : r.scrollTop = i - r.clientHeight / 2;
	}
	redraw() {
		let { shown: e, room: t } = this, n = this.canvas.getContext("2d"), [r, i] = [t.clientWidth, t.clientHeight];
		if (e === null || n === null || r === 0 || i === 0) return;
		t.classList.toggle("wide", this.wide), n.font = `13px ${this.theme.font}`;
		let a = (e) => this.wide ? Math.min(n.measureText(e.text).width, Mo) : 0, o = this.wide ? 14 : No, s = this.wide ? 8 : 0;
		this.ends = {
			target: Eo(e.rows.map(a), o, s),
			source: Eo(e.keys.map(a), o, s)
		};
		let c = Math.ceil(this.long);
		this.spacer.style.setProperty("width", this.wide ? `${c}px` : "1px"), this.spacer.style.setProperty("height", this.wide ? "1px" : `${c}px`);
		for (let e of [this.canvas, this.over]) ca(e, r, i);
		this.stroke(n, this.lines, 1), this.mark();
	}
	at(e, t) {
		let { ends: n, room: r } = this, i = n === null ? 0 : Oo(n[e], t) + this.shift(e);
		return this.wide ? {
			x: this.place(i) - r.scrollLeft,
			y: e === "target" ? jo : r.clientHeight - jo
		} : {
			x: e === "target" ? this.column : r.clientWidth - this.column,
			y: i - r.scrollTop
		};
	}
	get column() {
		return Math.min(Po, this.room.clientWidth / 3);
	}
	stroke(e, t, n) {
		let { shown: r, room: i } = this;
		if (r === null) return;
		let [a, o] = [i.clientWidth, i.clientHeight], s = r.heads.length;
		e.lineCap = "round";
		for (let { row: i, key: c, weight: l, head: u } of t) {
			let [t, d] = [this.at("target", i), this.at("source", c)], f = (u - (s - 1) / 2) * 2;
			if (!(this.wide ? Math.max(t.x, d.x) < 0 || Math.min(t.x, d.x) > a : Math.max(t.y, d.y) < 0 || Math.min(t.y, d.y) > o)) {
				if (e.globalAlpha = Math.min((.25 + .7 * l) * n, 1), e.strokeStyle = r.colours[u] ?? "", e.lineWidth = .75 + l * 5, e.beginPath(), this.wide) {
					let n = (t.y + d.y) / 2;
					e.moveTo(t.x + f, t.y), e.bezierCurveTo(t.x + f, n, d.x + f, n, d.x + f, d.y);
				} else {
					let n = (t.x + d.x) / 2;
					e.moveTo(t.x, t.y + f), e.bezierCurveTo(n, t.y + f, n, d.y + f, d.x, d.y + f);
				}
				e.stroke();
			}
		}
		e.globalAlpha = 1;
	}
	write(e) {
		let { shown: t, room: n } = this;
		if (t !== null) {
			e.textBaseline = "middle";
			for (let r of ["target", "source"]) (r === "target" ? t.rows : t.keys).forEach((t, i) => {
				let { x: a, y: o } = this.at(r, i);
				if (this.wide ? a < -110 || a > n.clientWidth + Mo : o < -20 || o > n.clientHeight + No) return;
				e.fillStyle = this.theme.tone(t.special ? "quiet" : "ink"), e.font = `13px ${this.theme.font}`;
				let s = r === "target";
				e.textAlign = this.wide ? "center" : s ? "right" : "left";
				let c = this.wide ? Mo : this.column - 14, [l, u] = this.wide ? [a, s ? o - 13 : o + 13] : [a + (s ? -8 : 8), o];
				e.fillText(oa(e, t.text, c), l, u);
			});
		}
	}
	mark() {
		let { active: e, shown: t, ends: n } = this, r = this.over.getContext("2d");
		if (r === null || t === null || n === null) return;
		r.clearRect(0, 0, this.room.clientWidth, this.room.clientHeight);
		let i = e !== null && e.index >= 0 && e.index < (e.side === "target" ? t.rows : t.keys).length;
		if (this.canvas.classList.toggle("faded", i), this.write(r), !i || e === null) return;
		let a = this.lines.filter(({ row: t, key: n }) => (e.side === "target" ? t : n) === e.index);
		this.stroke(r, a, 1.4);
		let { x: o, y: s } = this.at(e.side, e.index), c = e.side === "target";
		r.strokeStyle = this.theme.tone("accent"), r.lineWidth = 2;
		let l = n[e.side].sizes[e.index] ?? 0;
		this.wide ? r.strokeRect(o - l / 2 + 1, c ? s - jo + 3 : s + 3, l - 2, 20) : r.strokeRect(c ? o - this.column + 2 : o + 4, s - No / 2, this.column - 6, No);
	}
};
// src/lines-panel.tsx
function Io() {
	let e = J(), { now: t, theme: n } = e, r = U(null), i = U(null), a = K(0), o = () => {
		let [n, r, i] = [
			t.sheet.value,
			e.reading.value,
			t.view.value
		];
		if (n === null || r === null) return null;
		let a = (e, t) => {
			let r = n.excerpt[e].from, a = i?.[e] ?? n.excerpt[e];
			return to(t, {
				from: a.from - r,
				to: a.to - r
			});
		};
		return {
			rows: a("rows", r.rowSpans),
			keys: a("keys", r.keySpans)
		};
	}, s = ({ side: e, index: t }, n) => ({
		side: e,
		index: t + n * ((e === "target" ? o()?.rows : o()?.keys)?.from ?? 0)
	}), c = (e) => s(e, 1);
	H(() => {
		if (r.current === null) return;
		let t = (t) => {
			let n = e.reading.peek(), { side: r, index: i } = c(t);
			return {
				side: r,
				index: (r === "target" ? n?.rowSpans : n?.keySpans)?.[i]?.from ?? i
			};
		}, o = new Fo(n, r.current, {
			point: (n) => {
				e.point(t(n));
				let i = e.reading.peek();
				if (i === null || !r.current?.matches(":focus")) return;
				let a = c(n), [o, s] = n.side === "target" ? [i.rows, i.keys] : [i.keys, i.rows];
				e.spoken.value = _i(a, o[a.index]?.text ?? "", Qa(i, a), s.map(({ text: e }) => e));
			},
			pin: (n) => e.pin(t(n)),
			left: (e) => a.value = e
		});
		return i.current = o, l(), u(), () => o.dispose();
	}, []);
	let l = () => {
		n.changes.value;
		let [r, a] = [t.sheet.value, e.reading.value], s = e.heads.value, c = t.threshold.value / 100, l = t.overview.value?.rightToLeft.has(r?.layer ?? -1) ?? !1, u = o();
		if (r === null || a === null || u === null || r.coarse) return;
		let { rows: d, keys: f } = u, p = s.flatMap((t, r) => {
			let i = e.read(e.matrixOf(t))?.matrix;
			return i === void 0 ? [] : [{
				matrix: De(i, d, f),
				colour: n.heads[r] ?? ""
			}];
		}), m = [{
			matrix: De(a.matrix, d, f),
			colour: n.heads[0] ?? ""
		}], h = p.length > 0 ? p : m;
		i.current?.draw({
			rows: a.rows.slice(d.from, d.to),
			keys: a.keys.slice(f.from, f.to),
			heads: h.map(({ matrix: e }) => e),
			colours: h.map(({ colour: e }) => e),
			threshold: c,
			rightToLeft: l
		});
	}, u = () => {
		let [t, n] = [e.place.value, e.reading.value];
		if (t === null || n === null) return i.current?.point(null);
		let { side: r, index: a } = $a(n, t);
		i.current?.point(s({
			side: r,
			index: a
		}, -1));
	};
	q(l), q(u);
	let d = t.sheet.value?.coarse ?? !0;
	return /* @__PURE__ */ O(A, null, /* @__PURE__ */ O("p", {
		class: "hint empty",
		hidden: !d
	}, "Lines stand here when the map is near enough to have words."), /* @__PURE__ */ O("div", {
		class: "lines",
		hidden: d
	}, /* @__PURE__ */ O("div", { class: "aside" }, /* @__PURE__ */ O("label", { class: "slider" }, "Lines from ", /* @__PURE__ */ O("output", null, t.threshold.value, " %"), /* @__PURE__ */ O("input", {
		id: "threshold",
		type: "range",
		min: 0,
		max: 100,
		step: 1,
		value: t.threshold.value,
		"aria-label": "Least weight that has a line, in percent",
		onInput: (t) => e.set({ threshold: Number(t.currentTarget.value) })
	})), /* @__PURE__ */ O(ja, null), /* @__PURE__ */ O("p", {
		class: "note",
		hidden: a.value === 0
	}, a.value.toLocaleString("en"), " thinner lines are left out.")), /* @__PURE__ */ O("div", {
		id: "lines",
		class: "lines-room",
		ref: r,
		tabIndex: 0,
		role: "application",
		"aria-roledescription": "lines between words",
		"aria-label": "Words that look, words that are looked at, and a line for each weight. Arrow keys move, Enter keeps a word."
	})));
}
// src/notes-panel.tsx
var Lo = 2e3;
function Ro() {
	let e = J(), { door: t } = e, n = K(null), r = K(""), i = K(""), a = (t, r = "") => t?.then((t) => {
		[n.value, i.value] = [t, ""], r && (e.spoken.value = r);
	}, (e) => void (i.value = P.of(e).message));
	return H(() => void a(t.notes?.()), []), /* @__PURE__ */ O("div", { class: "doubt notes" }, t.addNote && /* @__PURE__ */ O("form", {
		class: "aside",
		onSubmit: (n) => {
			n.preventDefault();
			let o = r.value.trim();
			o !== "" && a(t.addNote?.(o, e.link), "The note is kept.")?.then(() => {
				i.value === "" && (r.value = "");
			});
		}
	}, /* @__PURE__ */ O("label", { for: "note" }, "A note on what is on screen"), /* @__PURE__ */ O("textarea", {
		id: "note",
		rows: 3,
		maxLength: Lo,
		value: r.value,
		onInput: (e) => r.value = e.currentTarget.value
	}), /* @__PURE__ */ O("button", {
		type: "submit",
		disabled: r.value.trim() === ""
	}, "Keep the note"), /* @__PURE__ */ O(ci, { said: i.value })), /* @__PURE__ */ O("ul", {
		id: "notes",
		tabIndex: 0,
		"aria-label": "Notes"
	}, n.value?.map(({ id: n, text: r, link: i }) => /* @__PURE__ */ O("li", { key: n }, /* @__PURE__ */ O("p", { dir: "auto" }, r), e.address !== null && /* @__PURE__ */ O("a", { href: i }, "Show its view"), " ", t.removeNote && /* @__PURE__ */ O("button", {
		type: "button",
		onClick: () => void a(t.removeNote?.(n), "The note is removed.")
	}, "Remove"))), n.value?.length === 0 && /* @__PURE__ */ O("li", { class: "note" }, "No notes yet. A note keeps the view on screen.")));
}
// src/mechanism-panel.tsx
var zo = 18;
function Bo() {
	let e = J(), { now: t, door: n } = e, r = K(null), i = t.answer.value, a = t.sheet.value, o = Be({
		answer: i,
		sheet: a,
		layer: t.layer.value,
		head: t.head.value,
		pinned: t.pinned.value,
		pointed: e.place.value
	}), s = o === null ? "" : JSON.stringify([i?.map, o]), { came: c, problem: l, waiting: u } = _a(i?.map == null ? null : o, s, (e, t) => n.mechanism?.(i?.map ?? "", e, t));
	H(() => void (r.value = null), [s]);
	let d = e.layer.value;
	if (o === null || d === null || a === null) return /* @__PURE__ */ O("p", { class: "hint empty" }, a?.coarse === !0 ? "The formula of a row stands here when the map is near enough to have words." : "The mean of all heads has no formula of its own. Choose a head: its formula stands here, with the numbers of a row.");
	if (c.value === null) return /* @__PURE__ */ O(li, {
		problem: l.value,
		doing: "Reading the numbers…"
	});
	let { found: f, asked: p } = c.value, m = (e) => (t) => a[e][t - a.excerpt[e].from]?.text ?? `${t}`;
	if (f.missing) return /* @__PURE__ */ O("p", { class: "hint empty" }, "There is no formula to show: ", f.missing, ".");
	let [h, g] = [Ve(t.factor.value), !t.unmasked.value], _ = Ue(f, h, g), v = {
		...c.value,
		result: _,
		row: m("rows")(p.row),
		keyName: m("keys"),
		factor: h,
		masked: g
	}, y = _.lines.reduce((e, t) => t.weight > e.weight ? t : e, _.lines[0]), b = r.value ?? o.key ?? y.key, x = _.lines.find((e) => e.key === b) ?? y;
	return /* @__PURE__ */ O("div", { class: "doubt mechanism" }, /* @__PURE__ */ O("div", { class: "aside" }, /* @__PURE__ */ O("h3", null, "How “", /* @__PURE__ */ O("bdi", null, v.row), "” looks in ", Y(d, p.head)), /* @__PURE__ */ O(Vo, {
		...v,
		line: x
	}), /* @__PURE__ */ O(Ho, v), /* @__PURE__ */ O(ci, { said: l.value })), /* @__PURE__ */ O("div", {
		class: u.value ? "table-room stale" : "table-room",
		tabIndex: 0,
		role: "region",
		"aria-label": "The numbers of each key",
		"aria-busy": u.value
	}, /* @__PURE__ */ O(Uo, {
		...v,
		line: x,
		point: (e) => r.value = e
	})), /* @__PURE__ */ O(Wo, {
		...v,
		line: x
	}));
}
function Vo({ found: e, result: t, keyName: n, factor: r, line: i }) {
	let [a] = Ye(e), { scale: o, softcap: s } = e, c = o * r;
	return /* @__PURE__ */ O("div", { class: "formula" }, /* @__PURE__ */ O("p", null, a, ": ", /* @__PURE__ */ O("b", null, Xe(e)), qe(o, e.width) && o !== 1 && `, where ${Ke(o)} = 1 / √${e.width}`), /* @__PURE__ */ O("p", null, /* @__PURE__ */ O("b", null, "weight = e^score / Σ e^score"), " over the keys that it sees"), /* @__PURE__ */ O("p", { id: "worked" }, "“", /* @__PURE__ */ O("bdi", null, n(i.key)), "”:", " ", i.hidden === "" ? /* @__PURE__ */ O(A, null, c !== 1 && `${Ke(c)} × ${L(i.product)} `, s !== null && "capped ", i.bias !== null && `+ ${L(i.bias)} `, (c !== 1 || s !== null || i.bias !== null) && "= ", L(i.score), "; e^(", L(i.score), " − ", L(t.sum), ") = ", /* @__PURE__ */ O("b", { class: "number" }, I(i.weight))) : `hidden (${i.hidden}), so its weight is 0`));
}
function Ho({ found: e, result: t, factor: n, masked: r }) {
	let i = J(), a = i.now.factor.value, o = qe(e.scale, e.width) ? He(Math.sqrt(e.width)) : null, s = e.keys.hidden.some((e) => e !== ""), c = a === 40 ? "as in the model" : `× ${Ke(n)}`;
	return /* @__PURE__ */ O(A, null, /* @__PURE__ */ O("label", { class: "slider" }, "Scores times ", /* @__PURE__ */ O("output", null, c), /* @__PURE__ */ O("input", {
		id: "factor",
		type: "range",
		min: 0,
		max: 80,
		value: a,
		list: "factors",
		"aria-valuetext": c,
		onInput: (e) => i.set({ factor: Number(e.currentTarget.value) })
	}), /* @__PURE__ */ O("datalist", { id: "factors" }, /* @__PURE__ */ O("option", {
		value: 40,
		label: "as in the model"
	}), o !== null && /* @__PURE__ */ O("option", {
		value: o,
		label: "without 1/√d"
	}))), /* @__PURE__ */ O("p", { class: "buttons" }, /* @__PURE__ */ O("button", {
		type: "button",
		disabled: a === 40,
		onClick: () => i.set({ factor: 40 })
	}, "as in the model"), o !== null && o !== 40 && /* @__PURE__ */ O("button", {
		id: "unscaled",
		type: "button",
		disabled: a === o,
		onClick: () => i.set({ factor: o })
	}, "without 1/√", e.width)), (s || !r) && /* @__PURE__ */ O("label", { class: "check" }, /* @__PURE__ */ O("input", {
		id: "unmasked",
		type: "checkbox",
		checked: !r,
		onChange: (e) => i.set({ unmasked: e.currentTarget.checked })
	}), " ", "ignore what hides keys"), /* @__PURE__ */ O("p", {
		id: "entropy",
		role: "status"
	}, "Entropy ", /* @__PURE__ */ O("b", null, t.entropy.toFixed(2)), " of at most ", t.most.toFixed(2), " nats."), /* @__PURE__ */ O("p", { class: "note" }, "A larger scale makes the weights sharper.", o !== null && " Products of d random numbers grow with √d; 1/√d keeps them from leaving all weight to one key."));
}
function Uo({ asked: e, found: t, result: n, row: r, keyName: i, factor: a, masked: o, line: s, point: c }) {
	let l = J(), u = new Set(t.shown), d = n.lines.filter(({ key: e }) => u.has(e)), f = We(t), [, p] = Ye(t), m = t.scale * a, h = l.now.sheet.value?.excerpt, g = (e) => h !== void 0 && e >= h.keys.from && e < h.keys.to, _ = (t) => {
		h !== void 0 && l.pin({
			side: "target",
			index: e.row - h.rows.from,
			partner: t - h.keys.from
		});
	};
	return /* @__PURE__ */ O(A, null, /* @__PURE__ */ O("table", { id: "scores" }, /* @__PURE__ */ O("caption", null, "Row of “", /* @__PURE__ */ O("bdi", null, r), "”, key by key"), /* @__PURE__ */ O("thead", null, /* @__PURE__ */ O("tr", null, /* @__PURE__ */ O("th", { scope: "col" }, "key"), /* @__PURE__ */ O("th", { scope: "col" }, p), m !== 1 && /* @__PURE__ */ O("th", { scope: "col" }, "× ", Ke(m)), t.keys.bias !== null && /* @__PURE__ */ O("th", { scope: "col" }, "+ bias"), (t.softcap !== null || t.keys.bias !== null) && /* @__PURE__ */ O("th", { scope: "col" }, "score"), /* @__PURE__ */ O("th", {
		scope: "col",
		class: "wide"
	}, "weight"))), /* @__PURE__ */ O("tbody", null, d.map(({ key: n, product: r, bias: a, score: o, weight: l, hidden: u }) => /* @__PURE__ */ O("tr", {
		key: n,
		class: n === s.key ? "partner" : void 0,
		"data-key": n,
		onPointerEnter: () => c(n)
	}, /* @__PURE__ */ O("th", { scope: "row" }, /* @__PURE__ */ O("button", {
		type: "button",
		class: "link",
		"aria-pressed": e.key === n,
		onFocus: () => c(n),
		onClick: () => g(n) ? _(n) : c(n)
	}, /* @__PURE__ */ O("bdi", null, i(n)))), /* @__PURE__ */ O("td", null, L(r)), m !== 1 && /* @__PURE__ */ O("td", null, L(r === null ? null : r * m)), t.keys.bias !== null && /* @__PURE__ */ O("td", null, L(a)), (t.softcap !== null || t.keys.bias !== null) && /* @__PURE__ */ O("td", null, L(o)), u === "" ? /* @__PURE__ */ O("td", { class: "wide" }, /* @__PURE__ */ O("span", { class: "track" }, /* @__PURE__ */ O("span", {
		class: "bar",
		style: { width: `${(l * 100).toFixed(2)}%` }
	})), /* @__PURE__ */ O("span", { class: "number" }, I(l))) : /* @__PURE__ */ O("td", { class: "wide impossible" }, "hidden: ", u))))), /* @__PURE__ */ O("p", { class: "note" }, f.seen > 0 && `${f.seen.toLocaleString("en")} keys of less weight are not in the table. `, f.hidden > 0 && `${f.hidden.toLocaleString("en")} hidden keys are not in the table. `, t.left.seen > 0 && (a !== 1 || !o) && `Of these, ${t.left.seen.toLocaleString("en")} count in the sum at the model’s scale alone. `, "Click a key to pin it."));
}
function Wo({ found: e, row: t, keyName: n, line: r, result: i }) {
	let a = J(), o = K(null), s = e.shown.indexOf(r.key), c = e.vectors[s], l = e.values?.[s], u = e.energy !== null, [d, f] = u ? ["W q", "U k"] : ["q", e.form === "general" ? "W k" : "k"], p = (e, t) => `${e} of “${R(t)}”`;
	return /* @__PURE__ */ O("figure", {
		class: "slopes vectors",
		tabIndex: 0,
		onKeyDown: (t) => {
			let n = e.query.length - 1, r = o.value ?? -1, i = {
				ArrowLeft: r - 1,
				ArrowRight: r + 1,
				Home: 0,
				End: n
			}[t.key];
			if (i === void 0 || t.ctrlKey || t.metaKey || t.altKey) return;
			t.preventDefault();
			let s = Math.min(Math.max(i, 0), n);
			o.value = s;
			let l = c === void 0 ? void 0 : Ge(e, c)[s];
			a.spoken.value = `number ${s}: ${d} ${L(e.query[s] ?? 0)}, ${f} ${L(c?.[s] ?? null)}, together ${L(l ?? null)}`;
		}
	}, /* @__PURE__ */ O("figcaption", null, "What the score is made of: ", e.width, " numbers", e.width > e.query.length && `, of which the first ${e.query.length} are shown`), /* @__PURE__ */ O(Go, {
		cell: o,
		title: p(d, t),
		numbers: e.query
	}), c !== void 0 && /* @__PURE__ */ O(A, null, /* @__PURE__ */ O(Go, {
		cell: o,
		title: p(f, n(r.key)),
		numbers: c
	}), e.energy !== null && /* @__PURE__ */ O(Go, {
		cell: o,
		title: "v",
		numbers: e.energy
	}), /* @__PURE__ */ O(Go, {
		cell: o,
		title: `${u ? "v × tanh(W q + U k)" : `${d} × ${f}`}: together ${L(r.product)}`,
		numbers: Ge(e, c)
	})), l !== void 0 && /* @__PURE__ */ O(Go, {
		cell: o,
		title: p("value", n(r.key)),
		numbers: l
	}), e.context === null ? /* @__PURE__ */ O("p", { class: "note" }, "Values and context are not known: ", e.no_values, ".") : /* @__PURE__ */ O(Go, {
		cell: o,
		title: "context: the sum of weight × value over all keys, as in the model",
		numbers: e.context
	}), /* @__PURE__ */ O("p", { class: "note" }, "Each strip has a scale of its own: blue is below 0, orange above. Point at a cell, or use the arrow keys, for its number.", i.lines.some(({ bias: e }) => e !== null) && " A bias is added to the score, whatever q and k are."));
}
function Go({ title: e, numbers: t, cell: n }) {
	let { theme: r } = J(), i = t.reduce((e, t) => Math.max(e, Math.abs(t ?? 0)), 0), a = va((e, n, { clientWidth: a }) => {
		if (a === 0) return;
		ca(e, a, zo);
		let o = a / t.length;
		t.forEach((e, t) => {
			n.fillStyle = Xi(qi(r.differences, .5 + (i === 0 ? 0 : (e ?? 0) / (2 * i)))), n.fillRect(t * o, 0, o > 6 ? o - 1 : o + .5, zo);
		});
	}, [t, r.changes.value]), o = n.value === null ? void 0 : t[n.value];
	return /* @__PURE__ */ O("div", { class: "strip" }, /* @__PURE__ */ O("span", null, e, " ", /* @__PURE__ */ O("small", null, o === void 0 ? `±${L(i)}` : `${n.value}: ${L(o)}`)), /* @__PURE__ */ O("div", null, /* @__PURE__ */ O("canvas", {
		ref: a,
		role: "img",
		"aria-label": `${e}; ${t.slice(0, 8).map((e) => L(e)).join(", ")}${t.length > 8 ? " …" : ""}`,
		onPointerMove: (e) => {
			let r = e.currentTarget.getBoundingClientRect();
			n.value = Math.min(Math.floor((e.clientX - r.left) / r.width * t.length), t.length - 1);
		},
		onPointerLeave: () => n.value = null
	})));
}
// src/statistics-panel.tsx
var Ko = [
	"normalized_entropy",
	"max_weight",
	"first_weight",
	"last_weight",
	"self_weight",
	"previous_weight",
	"next_weight",
	"distance"
], qo = 32, Jo = /* @__PURE__ */ new WeakMap();
function Yo() {
	let e = J(), { now: t } = e, [n, r, i, a] = [
		t.sheet.value,
		e.layer.value,
		t.answer.value,
		t.overview.value
	], o = e.weights.value, s = t.apart.value && n !== null && n.head !== null && !n.coarse, c = JSON.stringify([
		i?.map,
		n?.layer,
		n?.excerpt
	]), { came: l } = _a(s && r !== null && yn(r, n.excerpt) ? c : null, `${s} ${c}`, async (t, r) => {
		if (n === null) return [];
		let a = await e.door.tile(i?.map ?? "", n.layer, {
			excerpt: n.excerpt,
			head: null,
			rough: !0
		}, r);
		return Array.from({ length: a.heads }, (e, t) => we(a, t));
	}), u = l.value?.asked === c ? l.value.found : [];
	if (n === null || r === null || i === null || a === null || o === null) return null;
	let d = t.apart.value && !n.coarse, f = n.head ?? t.head.value, p = r.within ? n.excerpt.rows.from - n.excerpt.keys.from : null, m = new Set(n.keys.flatMap((e, t) => Xo(e) ? [t] : [])), h = (e) => /* @__PURE__ */ new Set([...m, ...Na(e)]), g = (e) => {
		let t = Jo.get(e) ?? /* @__PURE__ */ new Map();
		Jo.set(e, t);
		let n = `${p} ${d}`, r = t.get(n) ?? Pa(e, p, d ? h(e) : void 0);
		return t.set(n, r), r;
	}, _ = g(o), v = f === null ? "The mean of all heads" : `Head ${f}`, y = Math.min(Math.max((f ?? 0) - qo / 2, 0), Math.max(r.heads - qo, 0)), b = Array.from({ length: Math.min(r.heads, qo) }, (e, t) => y + t), x = a.statistics.layers[n.layer], S = (e, t) => {
		if (!d) return x?.[t]?.[e] ?? NaN;
		let r = n.head === null ? zr(n, e) : u[e] ?? null, i = e === f ? o : r;
		return i === null ? NaN : g(i)[t];
	}, ee = Ko.filter((e) => b.some((t) => Number.isFinite(S(t, e)))), C = d ? [...h(o)].map((e) => n.keys[e]?.text ?? String(e)) : [];
	return /* @__PURE__ */ O("div", { class: "statistics" }, /* @__PURE__ */ O("div", { class: "aside" }, /* @__PURE__ */ O("h3", null, Y(r, f)), /* @__PURE__ */ O("div", { id: "interpretation" }, n.coarse ? /* @__PURE__ */ O("p", null, "The map is too long to be read here as a whole; the table has the numbers of all of it.") : La(_, v, d).map((e) => /* @__PURE__ */ O("p", { key: e }, e))), /* @__PURE__ */ O("label", { class: "check" }, /* @__PURE__ */ O("input", {
		id: "apart",
		type: "checkbox",
		checked: t.apart.value,
		disabled: n.coarse,
		onChange: (t) => e.set({ apart: t.currentTarget.checked })
	}), " ", "set sinks and special tokens aside"), d && /* @__PURE__ */ O("p", { class: "note" }, C.length > 0 ? `Left out: ${C.slice(0, 8).join(", ")}. ` : "There is none here. ", "A sink is a key that gets a quarter of all attention or more. What remains of each row is divided by its sum."), /* @__PURE__ */ O("p", { class: "note" }, "Numbers say how attention is spread. They do not say what the model needs.")), /* @__PURE__ */ O("div", {
		class: "table-room",
		tabIndex: 0,
		role: "region",
		"aria-label": "Numbers of each head"
	}, /* @__PURE__ */ O("table", null, /* @__PURE__ */ O("thead", null, /* @__PURE__ */ O("tr", null, /* @__PURE__ */ O("th", { scope: "col" }, "head"), ee.map((e) => /* @__PURE__ */ O("th", {
		key: e,
		scope: "col",
		title: Ci(e)
	}, Ti(e))))), /* @__PURE__ */ O("tbody", null, b.map((t) => /* @__PURE__ */ O("tr", {
		key: t,
		class: t === f ? "shown" : void 0
	}, /* @__PURE__ */ O("th", { scope: "row" }, /* @__PURE__ */ O("button", {
		type: "button",
		class: "link",
		"aria-label": `Show head ${t}`,
		"aria-current": t === f,
		onClick: () => e.see(n.layer, t)
	}, t)), ee.map((e) => {
		let n = S(t, e);
		return /* @__PURE__ */ O("td", { key: e }, Number.isFinite(n) ? Ei(e, n) : "–");
	}))))), r.heads > qo && /* @__PURE__ */ O("p", { class: "note" }, qo, " of ", r.heads, " heads, those around the one that is shown.")), !n.coarse && /* @__PURE__ */ O(Zo, {
		matrix: o,
		apart: d ? h(o) : /* @__PURE__ */ new Set()
	}));
}
function Xo({ special: e, text: t }) {
	return e || /^(\[(CLS|SEP|PAD|MASK|UNK)\]|<\|.*\|>|<(bos|eos|cls|sep|mask)>)$/.test(t);
}
function Zo({ matrix: e, apart: t }) {
	let n = J(), r = n.now.sheet.value, { entropy: i, received: a } = Fa(e, t), o = i.length || 1, s = [...a.keys()].sort((e, t) => (a[t] ?? 0) - (a[e] ?? 0)).slice(0, 3).map((e) => `${r?.keys[e]?.text ?? e} ${F((a[e] ?? 0) / o)}`), c = va((e, t) => Qo(e, t, n.theme, a, i), [
		e,
		t.size,
		n.theme.changes.value
	]);
	return /* @__PURE__ */ O("figure", { class: "places" }, /* @__PURE__ */ O("figcaption", null, /* @__PURE__ */ O("b", null, "Attention received"), " by each key, and ", /* @__PURE__ */ O("b", null, "entropy"), " of each query, along the text"), /* @__PURE__ */ O("canvas", {
		ref: c,
		role: "img",
		"aria-label": `Attention received by each key; most: ${s.join(", ")}`
	}), /* @__PURE__ */ O("p", { class: "note" }, "Most received: ", s.join(", "), "."));
}
function Qo(e, t, n, r, i) {
	let { width: a, height: o } = ca(e, Math.max(e.clientWidth, 120), Math.max(e.clientHeight, 80)), s = o / 2, c = r.reduce((e, t) => Math.max(e, t), 1e-9), l = (e, n, r, i, o) => {
		let c = a / Math.max(e.length, 1);
		t.fillStyle = o, e.forEach((e, a) => {
			let o = e / n * (s - 6), l = +(c > 4);
			t.fillRect(a * c, i > 0 ? r : r - o, Math.max(c - l, .5), Math.max(o, .5));
		});
	};
	l(r, c, s - 2, -1, n.tone("action")), l(i, 1, s + 2, 1, n.tone("quiet"));
}
// src/inspector.tsx
function Q(e, t, n, r = () => !0) {
	return {
		id: e,
		title: t,
		accepts: r,
		mount(e, t) {
			return xe(/* @__PURE__ */ O(si, { value: t }, /* @__PURE__ */ O(n, null)), e), {
				update: () => void 0,
				unmount: () => xe(null, e)
			};
		}
	};
}
var $o = [
	Q("distribution", "Distribution", so),
	Q("lines", "Lines", Io),
	Q("mechanism", "Mechanism", Bo, (e) => e.mechanism !== void 0),
	Q("statistics", "Statistics", Yo),
	Q("compare", "Compare", Ra),
	Q("doubt", "Doubt", xo, (e, t) => e.doubt !== void 0 && t?.doubt != null),
	Q("beams", "Beams", Ea, (e, t) => e.beams !== void 0 && t?.beams === !0),
	Q("alignment", "Alignment", ya, (e, t, n) => e.alignment !== void 0 && n?.gold === !0),
	Q("notes", "Notes", Ro, (e, t, n) => e.notes !== void 0 && n?.notes === !0)
];
function es() {
	let e = J(), t = U(null), n = U(null), r = K(!1), i = $o.filter((t) => t.accepts(e.door, e.now.answer.value, e.now.model.value)), a = i.find(({ id: t }) => t === e.now.tab.value) ?? i[0];
	H(() => {
		if (t.current !== null && a !== void 0) return n.current = {
			id: a.id,
			panel: a.mount(t.current, e)
		}, () => {
			n.current?.panel.unmount(), n.current = null;
		};
	}, [a?.id]), q(() => n.current?.panel.update(e.whole.value)), H(() => {
		let e = t.current?.parentElement?.querySelector(".tabs"), n = e?.querySelector("[aria-selected=true]");
		e && n && (e.scrollLeft = n.offsetLeft + n.offsetWidth - e.offsetLeft - e.clientWidth), r.value && n?.focus(), r.value = !1;
	}, [a?.id]);
	let o = (t, n) => {
		r.value = n, t !== void 0 && e.set({ tab: t === i[0]?.id ? null : t });
	};
	return /* @__PURE__ */ O(A, null, /* @__PURE__ */ O("div", {
		class: "tabs",
		role: "tablist",
		"aria-label": "Inspector",
		onKeyDown: (e) => {
			let t = i.findIndex(({ id: e }) => e === a?.id), n = {
				ArrowLeft: t - 1,
				ArrowRight: t + 1,
				Home: 0,
				End: i.length - 1
			}[e.key];
			n !== void 0 && (e.preventDefault(), o(i[(n + i.length) % i.length]?.id, !0));
		}
	}, i.map(({ id: e, title: t }) => /* @__PURE__ */ O("button", {
		key: e,
		id: `tab-${e}`,
		type: "button",
		role: "tab",
		"aria-selected": e === a?.id,
		"aria-controls": "inspected",
		tabIndex: e === a?.id ? 0 : -1,
		onClick: () => o(e, !1)
	}, t))), /* @__PURE__ */ O("div", {
		id: "inspected",
		class: "inspected",
		ref: t,
		role: "tabpanel",
		"aria-labelledby": `tab-${a?.id}`
	}));
}
// src/csv.ts
function ts(e, t) {
	return `attlas-${e.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 80) || "map"}.${t}`;
}
function ns(e, t, n, r, i) {
	let a = ["row,row_token,key,key_token,weight"], o = (e) => rs(e?.whole ?? e?.text ?? "");
	for (let s = r.rows.from; s < r.rows.to; s++) for (let c = r.keys.from; c < r.keys.to; c++) {
		if (ke(e, s, c)) continue;
		let r = e.values[s * e.columns + c] ?? 0;
		a.push(`${i.row + s},${o(t[s])},${i.key + c},${o(n[c])},${Number(r.toPrecision(6))}`);
	}
	return `${a.join("\r\n")}\r\n`;
}
function rs(e) {
	return /[",\r\n]|^\s|\s$/.test(e) ? `"${e.replace(/"/g, "\"\"")}"` : e;
}
// src/export.ts
var is = 16, as = 28, os = 56, ss = 288, cs = 2;
function ls(e) {
	let [t, n] = [e.layer.peek(), e.map?.view ?? null], r = e.state.sheet?.head ?? e.state.head;
	return t === null || n === null ? "" : `${Y(t, r)}, ${Si(n)}`;
}
function us(e, t, { width: n, height: r }) {
	let { map: i, theme: a } = e, o = e.weights.peek();
	if (i === null || o === null) return;
	let { scale: s } = e.state;
	t.fillStyle = a.tone("paper"), t.fillRect(0, 0, n, r), t.fillStyle = a.tone("ink"), t.font = `600 13px ${a.font}`, t.textAlign = "left", t.textBaseline = "middle", t.fillText(ls(e), is, 22), t.save(), t.translate(is, 44), i.export(t), t.restore();
	let c = r - is - os + 22;
	t.fillStyle = a.tone("quiet"), t.font = `12px ${a.font}`, t.textAlign = "left", t.textBaseline = "middle", t.fillText(`Colours: ${Ie.find(([e]) => e === s)?.[1] ?? s}`, is, c - 10), sa(t, a.ramp, ze(s, Me(o)), {
		x: is,
		y: c,
		width: Math.min(ss, n - 32)
	}, a.tone("quiet"), a.font);
}
function ds(e) {
	let t = e.map?.size ?? null;
	return t && {
		width: Math.max(Math.ceil(t.width), ss) + 32,
		height: Math.ceil(t.height) + as + os + 32
	};
}
function fs(e) {
	let t = ds(e);
	if (t === null) return null;
	let n = new zi();
	return us(e, n, t), n.file(t.width, t.height, ls(e));
}
async function ps(e) {
	let t = ds(e), n = document.createElement("canvas"), r = n.getContext("2d");
	return t === null || r === null ? null : ([n.width, n.height] = [t.width * cs, t.height * cs], r.scale(cs, cs), us(e, r, t), new Promise((e) => n.toBlob(e, "image/png")));
}
async function ms(e) {
	let t = new Image();
	t.className = "printed", t.src = `data:image/svg+xml,${encodeURIComponent(e)}`, await t.decode(), document.body.append(t), addEventListener("afterprint", () => t.remove(), { once: !0 }), window.print();
}
function hs(e) {
	let { sheet: t, view: n } = e.state, r = e.weights.peek();
	if (t === null || r === null) return null;
	let { rows: i, keys: a } = t.excerpt, o = n ?? t.excerpt, s = (e, n, r) => t.coarse ? {
		from: 0,
		to: r
	} : {
		from: n.from - e.from,
		to: n.to - e.from
	}, c = {
		rows: s(i, o.rows, r.rows),
		keys: s(a, o.keys, r.columns)
	}, l = t.coarse ? {
		row: 0,
		key: 0
	} : {
		row: i.from,
		key: a.from
	};
	return ns(r, t.rows, t.keys, c, l);
}
function gs(e, t) {
	let n = document.createElement("a");
	n.href = URL.createObjectURL(e), n.download = t, n.click(), setTimeout(() => URL.revokeObjectURL(n.href), 1e4);
}
// src/export-menu.tsx
var _s = {
	svg: "image/svg+xml",
	csv: "text/csv;charset=utf-8",
	png: "image/png"
};
function vs() {
	let e = J(), t = U(null), n = () => {
		t.current?.open === !0 && (t.current.open = !1, t.current.querySelector("summary")?.focus());
	}, r = async (t) => {
		n();
		let r = await {
			svg: fs,
			csv: hs,
			png: ps,
			pdf: fs
		}[t](e);
		if (r === null) {
			let t = new P("a map on screen", "none", "show a head first");
			return e.set({ problem: t });
		}
		if (t === "pdf") return ms(r);
		let i = ts(ls(e), t);
		gs(new Blob([r], { type: _s[t] }), i), e.spoken.value = `Saved as ${i}`;
	}, i = async () => {
		n();
		let t = new URL(e.link, location.href).href;
		try {
			await navigator.clipboard.writeText(t), e.notice.value = "The link is copied.";
		} catch {
			e.notice.value = `Copy this link: ${t}`;
		}
	};
	return /* @__PURE__ */ O("details", {
		class: "menu",
		ref: t,
		onKeyDown: (e) => {
			e.key === "Escape" && (e.stopPropagation(), n());
		},
		onFocusOut: (e) => {
			let n = e.relatedTarget;
			n instanceof Node && t.current?.contains(n) === !1 && (t.current.open = !1);
		}
	}, /* @__PURE__ */ O("summary", null, "Export"), /* @__PURE__ */ O("div", { class: "menu-items" }, /* @__PURE__ */ O("button", {
		id: "export-png",
		type: "button",
		onClick: () => void r("png")
	}, "PNG of the map"), /* @__PURE__ */ O("button", {
		id: "export-svg",
		type: "button",
		onClick: () => void r("svg")
	}, "SVG of the map"), e.address !== null && /* @__PURE__ */ O("button", {
		id: "export-pdf",
		type: "button",
		onClick: () => void r("pdf")
	}, "PDF: print the map"), /* @__PURE__ */ O("button", {
		id: "export-csv",
		type: "button",
		onClick: () => void r("csv")
	}, "CSV of its numbers"), e.address !== null && /* @__PURE__ */ O("button", {
		id: "copy-link",
		type: "button",
		onClick: () => void i()
	}, "Copy the link")));
}
// src/viewport.ts
var ys = 38, bs = 4;
function xs({ queries: e, keys: t }, n) {
	let r = Math.min(n.width / Math.max(t, 1), ys), i = Math.min(n.height / Math.max(e, 1), ys), [a, o] = Math.max(r, i) / Math.min(r, i) <= bs ? [Math.min(r, i), Math.min(r, i)] : [r, i];
	return {
		width: a * t,
		height: o * e
	};
}
function Ss(e, t, n, r, i) {
	let a = Math.min(r, i / 72), o = Math.min(Math.max((e.to - e.from) / n, a), r);
	return ws(e.from + t * (e.to - e.from) - t * o, o, r);
}
function Cs(e, t, n, r) {
	let i = e.to - e.from;
	return ws(e.from + t / r * i, i, n);
}
function ws(e, t, n) {
	let r = Math.min(Math.max(e, 0), n - t);
	return {
		from: r,
		to: r + t
	};
}
function Ts({ rows: e, keys: t }) {
	let n = ({ from: e, to: t }) => {
		let n = Math.floor(e + 1e-6);
		return {
			from: n,
			to: Math.max(Math.ceil(t - 1e-6), n + 1)
		};
	};
	return {
		rows: n(e),
		keys: n(t)
	};
}
function Es(e, t, n) {
	let r = Math.floor(e.from + t / n * (e.to - e.from));
	return Math.min(Math.max(r, Math.floor(e.from)), Math.ceil(e.to) - 1);
}
function $(e, t, n) {
	return (t - e.from) / (e.to - e.from) * n;
}
function Ds(e, t, n) {
	let r = t / (e.to - e.from), i = 1;
	for (let e = 1; i * r < n; e *= 10) i = [
		1,
		2,
		5,
		10
	].map((t) => t * e).find((e) => e * r >= n) ?? 10 * e;
	let a = Math.ceil(e.from / i) * i, o = [];
	for (let t = a; t < e.to; t += i) o.push(t);
	return o;
}
var Os = /* @__PURE__ */ new WeakMap();
function ks(e, t, n, r) {
	let i = As(t.near), a = (t) => {
		let n = Os.get(t);
		if (n !== void 0) return n;
		let r = t.reduce((t, { text: n }) => Math.max(t, Math.min(e.measureText(n).width, 112)), 0);
		return Os.set(t, r), r;
	}, o = e.measureText(t.layer.queries.toLocaleString("en")).width, s = (e, r) => {
		let i = Math.ceil(Math.max(e ? a(t.rows) : 0, o) + 12), s = Math.ceil((r ? a(t.columns) : 13) + 14), c = Math.max(n.width - i - 16, 40);
		return {
			left: i,
			top: s,
			...xs(t.layer, {
				width: c,
				height: Math.max(n.height - s - 4, 40)
			})
		};
	}, c = s(i, i), l = {
		rows: i && c.height / (r.rows.to - r.rows.from) >= 11,
		keys: i && c.width / (r.keys.to - r.keys.from) >= 11
	};
	return {
		...s(l.rows, l.keys),
		named: l
	};
}
function As({ matrix: e, excerpt: t }) {
	let { rows: n, keys: r } = t;
	return n.to - n.from === e.rows && r.to - r.from === e.columns;
}
// src/map-view.ts
var js = 28, Ms = 8, Ns = 120, Ps = 84, Fs = class {
	constructor(e, t, n, r) {
		this.theme = e, this.canvas = t, this.room = n, this.handlers = r, this.picture = null, this.shown = null, this.plan = null, this.bitmaps = /* @__PURE__ */ new Map(), this.pointers = /* @__PURE__ */ new Map(), this.frame = null, this.travelled = 0, this.marks = document.createElement("div"), this.measured = {
			width: 0,
			height: 0
		}, this.mini = document.createElement("canvas"), this.marks.className = "crosshair", this.marks.ariaHidden = "true", this.marks.append(...Array.from({ length: 4 }, () => document.createElement("div"))), t.after(this.marks), this.mini.className = "minimap", this.mini.ariaHidden = "true", this.mini.hidden = !0, n.append(this.mini);
		for (let e of ["pointerdown", "pointermove"]) this.mini.addEventListener(e, (e) => this.jump(e));
		t.addEventListener("pointermove", (e) => this.moved(e)), t.addEventListener("pointerdown", (e) => this.pressed(e)), t.addEventListener("pointerup", (e) => this.released(e)), t.addEventListener("pointercancel", (e) => this.pointers.delete(e.pointerId)), t.addEventListener("pointerleave", () => r.leave()), t.addEventListener("wheel", (e) => this.wheeled(e), { passive: !1 }), t.addEventListener("keydown", (e) => this.typed(e)), new ResizeObserver(() => {
			let { width: e, height: t } = this.measured;
			(e !== n.clientWidth || t !== n.clientHeight) && this.redraw();
		}).observe(n);
	}
	draw(e) {
		let t = this.picture;
		this.picture = e;
		let n = (...n) => n.every((n) => e[n] === t?.[n]);
		e.near.shade === t?.near.shade && e.far?.shade === t.far?.shade && n("ramp") || this.bitmaps.clear(), this.shown !== null && n("layer") && u(Ts(this.shown), e.view) || (this.shown = e.view), n("layer", "view", "far", "near", "rows", "columns", "ramp", "gold") && this.plan !== null ? this.mark() : this.redraw();
	}
	get rightToLeft() {
		return this.picture?.rightToLeft ?? !1;
	}
	cellAt(e, t) {
		let { picture: n, plan: r, shown: i } = this;
		if (n === null || r === null || i === null) return null;
		let [a, o] = [e - r.left, t - r.top];
		if (a < 0 || o < 0 || a >= r.width || o >= r.height) return null;
		let s = this.rightToLeft ? r.width - a : a, { excerpt: c, matrix: l } = n.near, u = Is(c.rows, l.rows, Es(i.rows, o, r.height)), d = Is(c.keys, l.columns, Es(i.keys, s, r.width));
		return u === null || d === null ? null : {
			row: u,
			column: d
		};
	}
	point(e) {
		let t = this.canvas.getBoundingClientRect();
		return {
			x: e.clientX - t.left,
			y: e.clientY - t.top
		};
	}
	moved(e) {
		let t = this.point(e), n = this.pointers.get(e.pointerId);
		if (n === void 0) {
			let e = this.cellAt(t.x, t.y);
			e !== null && this.handlers.point(e, !1);
			return;
		}
		if (this.pointers.set(e.pointerId, t), this.travelled += Math.abs(t.x - n.x) + Math.abs(t.y - n.y), this.frame !== null) return this.frame = {
			from: this.frame.from,
			to: t
		}, this.mark();
		let [r, i] = [...this.pointers.values()];
		if (r === void 0) return;
		if (i === void 0) return this.pan(n.x - t.x, n.y - t.y);
		let a = t === r ? i : r, o = (e) => Math.hypot(e.x - a.x, e.y - a.y), s = {
			x: (r.x + i.x) / 2,
			y: (r.y + i.y) / 2
		};
		this.zoom(s, o(t) / Math.max(o(n), 1));
	}
	pressed(e) {
		if (e.button !== 0) return;
		let t = this.point(e);
		this.canvas.setPointerCapture(e.pointerId), this.pointers.set(e.pointerId, t), this.travelled = 0, this.frame = e.shiftKey ? {
			from: t,
			to: t
		} : null;
	}
	released(e) {
		if (!this.pointers.delete(e.pointerId)) return;
		let { frame: t, picture: n } = this;
		if (this.frame = null, t !== null && this.travelled > 4) return this.enter(t);
		if (this.travelled > 4 || n === null) return;
		let r = this.point(e), i = this.cellAt(r.x, r.y);
		i !== null && (As(n.near) ? this.handlers.click(i) : this.zoom(r, Ms));
	}
	enter({ from: e, to: t }) {
		let { plan: n, shown: r } = this;
		if (n === null || r === null) return;
		let i = (e) => this.rightToLeft ? n.width - (e - n.left) : e - n.left, a = (e, t, n, r) => ({
			from: Es(e, Math.max(Math.min(t, n), 0), r),
			to: Es(e, Math.min(Math.max(t, n), r - 1), r) + 1
		});
		this.go({
			rows: a(r.rows, e.y - n.top, t.y - n.top, n.height),
			keys: a(r.keys, i(e.x), i(t.x), n.width)
		});
	}
	wheeled(t) {
		let { picture: n, shown: r } = this;
		if (n === null || r === null) return;
		let { layer: i } = n, a = u(Ts(r), e(i));
		if (!t.ctrlKey && a && t.deltaY > 0) return;
		t.preventDefault();
		let o = t.deltaMode === 1 ? 16 : 1;
		this.zoom(this.point(t), Math.exp(-t.deltaY * o * .002));
	}
	typed(t) {
		let { picture: n, plan: r } = this;
		if (t.ctrlKey || t.altKey || t.metaKey || n === null || r === null) return;
		let { near: i, layer: a } = n, o = this.handlers.here(), s = {
			row: (o?.side === "target" ? o.index : o?.partner) ?? 0,
			column: (o?.side === "target" ? o.partner : o?.index) ?? 0
		}, c = this.rightToLeft ? -1 : 1, l = {
			ArrowUp: [-1, 0],
			ArrowDown: [1, 0],
			ArrowLeft: [0, -c],
			ArrowRight: [0, c]
		}[t.key], u = this.middleOf(s) ?? {
			x: r.left + r.width / 2,
			y: r.top + r.height / 2
		};
		if (l !== void 0) {
			let e = (e, t) => Math.min(Math.max(e, 0), t - 1), t = e(s.row + l[0], i.matrix.rows), n = e(s.column + l[1], i.matrix.columns);
			this.handlers.point({
				row: t,
				column: n
			}, !0);
		} else if (t.key === "+" || t.key === "=") this.zoom(u, 2);
		else if (t.key === "-") this.zoom(u, .5);
		else if (t.key === "0") this.go(e(a));
		else if (t.key === "Enter" || t.key === " ") this.handlers.click(s);
		else return;
		t.preventDefault();
	}
	zoom({ x: e, y: t }, n) {
		let { picture: r, plan: i, shown: a } = this;
		if (r === null || i === null || a === null) return;
		let o = (e, t) => Math.min(Math.max(e / t, 0), 1), s = o(e - i.left, i.width);
		this.go({
			rows: Ss(a.rows, o(t - i.top, i.height), n, r.layer.queries, i.height),
			keys: Ss(a.keys, this.rightToLeft ? 1 - s : s, n, r.layer.keys, i.width)
		});
	}
	pan(e, t) {
		let { picture: n, plan: r, shown: i } = this;
		n !== null && r !== null && i !== null && this.go({
			rows: Cs(i.rows, t, n.layer.queries, r.height),
			keys: Cs(i.keys, this.rightToLeft ? -e : e, n.layer.keys, r.width)
		});
	}
	go(e) {
		this.shown = e, this.redraw(), clearTimeout(this.settling);
		let t = this.picture?.layer;
		this.settling = setTimeout(() => this.handlers.view(Ts(e), t), Ns);
	}
	redraw() {
		let { picture: t, shown: n } = this, r = {
			width: this.room.clientWidth,
			height: this.room.clientHeight
		};
		this.measured = r;
		let i = this.canvas.getContext("2d");
		if (t === null || n === null || i === null || r.width === 0 || r.height === 0) return;
		i.font = `600 13px ${this.theme.font}`;
		let a = ks(i, t, r, n);
		this.plan = a;
		let [o, s] = [a.left + a.width + 16, a.top + a.height + 4];
		ca(this.canvas, o, s);
		let c = u(Ts(n), e(t.layer));
		Z(this.canvas, "touch-action", c ? "pan-x pan-y" : "none"), this.render(i, t, a, n), this.drawMinimap(), this.mark();
	}
	render(e, t, n, r) {
		let i = this.theme.font;
		e.save(), e.beginPath(), e.rect(n.left, n.top, n.width, n.height), e.clip();
		let { far: a, near: o } = t;
		a !== null && a !== o && this.paint(e, t, a, n, r), this.paint(e, t, o, n, r), this.write(e, t, n, r, i);
		for (let i of t.gold) this.frameLink(e, i, n, r);
		e.restore(), this.name(e, t, n, r, i);
	}
	get size() {
		let { plan: e } = this;
		return e && {
			width: e.left + e.width + 16,
			height: e.top + e.height + 4
		};
	}
	export(e) {
		let { picture: t, plan: n, shown: r } = this;
		t !== null && n !== null && r !== null && (this.render(e, t, n, r), this.drawMarks(e, t, n, r));
	}
	closer(e) {
		let { plan: t } = this;
		t !== null && this.zoom({
			x: t.left + t.width / 2,
			y: t.top + t.height / 2
		}, e);
	}
	get view() {
		return this.shown && Ts(this.shown);
	}
	paint(e, t, n, r, i) {
		let { rows: a, keys: o } = n.excerpt, s = $(i.keys, o.from, r.width), c = $(i.rows, a.from, r.height), l = $(i.keys, o.to, r.width) - s, u = $(i.rows, a.to, r.height) - c;
		e.save(), e.translate(r.left, r.top), this.rightToLeft && (e.translate(r.width, 0), e.scale(-1, 1)), e.clearRect(s, c, l, u), e.fillStyle = aa(e, this.theme.tone("line")) ?? this.theme.tone("line"), e.fillRect(s, c, l, u), e.imageSmoothingEnabled = !1, this.stretch(e, n, t.ramp, [
			s,
			c,
			l,
			u
		]), e.restore();
	}
	frameLink(e, { source: t, target: n, sure: r }, i, a) {
		let o = t.map((e) => this.x(e, i, a)), [s, c] = n.map((e) => i.top + $(a.rows, e, i.height));
		e.setLineDash(r ? [] : [4, 3]);
		for (let [t, n] of [["paper", 4], ["ink", 2]]) e.strokeStyle = this.theme.tone(t), e.lineWidth = n, e.strokeRect(Math.min(...o) + 2, s + 2, Math.abs((o[1] ?? 0) - (o[0] ?? 0)) - 4, c - s - 4);
		e.setLineDash([]);
	}
	stretch(e, t, n, r) {
		let i = this.bitmaps.get(t.matrix) ?? ia([t], n);
		this.bitmaps.set(t.matrix, i), i.width > 0 && i.height > 0 && e.drawImage(i, ...r);
	}
	write(e, t, n, r, i) {
		let a = n.width / (r.keys.to - r.keys.from), o = n.height / (r.rows.to - r.rows.from), { matrix: s, excerpt: c } = t.near;
		if (Math.min(a, o) < 8 || !As(t.near)) return;
		e.fillStyle = this.theme.tone("paper");
		let [l, u] = [Ls(c.rows, r.rows), Ls(c.keys, r.keys)];
		for (let t = l.from; t <= l.to; t++) e.fillRect(n.left, n.top + $(r.rows, t, n.height) - .5, n.width, 1);
		for (let t = u.from; t <= u.to; t++) e.fillRect(this.x(t, n, r) - .5, n.top, 1, n.height);
		if (!(Math.min(a, o) < js)) {
			e.font = `11px ${i}`, e.textAlign = "center", e.textBaseline = "middle";
			for (let i = l.from; i < l.to; i++) for (let a = u.from; a < u.to; a++) {
				let [o, l] = [i - c.rows.from, a - c.keys.from];
				if (ke(s, o, l)) continue;
				let u = Oe(s, o, l);
				e.fillStyle = Zi(qi(t.ramp, t.near.shade(u, o)));
				let d = n.top + $(r.rows, i + .5, n.height);
				e.fillText(Fe(u), this.x(a + .5, n, r), d);
			}
		}
	}
	name(e, t, n, r, i) {
		e.textBaseline = "middle";
		let a = Math.min(n.height / (r.rows.to - r.rows.from), n.width / (r.keys.to - r.keys.from)), o = n.named.rows || n.named.keys ? Math.min(13, Math.max(a, 11)) : 13, s = (t) => {
			e.font = `${o}px ${i}`, e.fillStyle = this.theme.tone("quiet"), e.fillText(oa(e, t, 112), 0, 0);
		};
		for (let i of [!0, !1]) {
			let [a, o, c] = i ? [
				r.rows,
				n.height,
				t.rows
			] : [
				r.keys,
				n.width,
				t.columns
			], { rows: l, keys: u } = t.near.excerpt, d = i ? l.from : u.from, f = i ? n.named.rows : n.named.keys, p = f ? Rs(Ls({
				from: 0,
				to: Infinity
			}, a)) : Ds(a, o, i ? 24 : 56);
			for (let t of p) {
				let l = f ? c[t - d]?.text : t.toLocaleString("en"), u = i ? n.top + $(a, t + .5, o) : this.x(t + .5, n, r), p = i ? n.top : n.left;
				l === void 0 || u < p || u > p + o || (e.save(), e.textAlign = i ? "right" : f ? "left" : "center", i ? e.translate(n.left - 8, u) : e.translate(u, n.top - (f ? 8 : 12)), !i && f && e.rotate(-Math.PI / 2), s(l), e.restore());
			}
		}
	}
	x(e, t, n) {
		let r = $(n.keys, e, t.width);
		return t.left + (this.rightToLeft ? t.width - r : r);
	}
	middleOf({ row: e, column: t }) {
		let { picture: n, plan: r, shown: i } = this;
		if (n === null || r === null || i === null) return null;
		let { rows: a, keys: o } = n.near.excerpt, { matrix: s } = n.near, c = (e, t, n) => e.from + (t + .5) * (e.to - e.from) / n, l = this.x(c(o, t, s.columns), r, i), u = $(i.rows, c(a, e, s.rows), r.height);
		return {
			x: l,
			y: r.top + u
		};
	}
	mark() {
		let { picture: e, plan: t, shown: n } = this;
		if (e !== null && t !== null && n !== null) {
			for (let e of [
				"left",
				"top",
				"width",
				"height"
			]) Z(this.marks, e, `${t[e]}px`);
			this.marksOf(e, t, n).forEach((e, t) => {
				let n = this.marks.children[t];
				if (n.hidden !== (e === null) && (n.hidden = e === null), e === null) return;
				let [r, i, a, o] = e.map((e) => `${Math.round(e * 100) / 100}px`);
				Z(n, "width", a), Z(n, "height", o), Z(n, "transform", `translate(${r}, ${i})`);
			});
		}
	}
	drawMinimap() {
		let { picture: t, shown: n, mini: r } = this;
		r.hidden = !(t !== null && n !== null && !u(Ts(n), e(t.layer))) || t.far === null;
		let i = r.getContext("2d");
		if (t === null || n === null || t.far === null || r.hidden || i === null) return;
		let { layer: a } = t, o = Ps / Math.max(a.queries, a.keys), [s, c] = [Math.max(a.keys * o, 16), Math.max(a.queries * o, 16)];
		ca(r, s, c), this.rightToLeft && (i.translate(s, 0), i.scale(-1, 1)), this.stretch(i, t.far, t.ramp, [
			0,
			0,
			s,
			c
		]);
		let l = (e, t, n) => [e.from / t * n, Math.max((e.to - e.from) / t * n, 4)], [d, f] = l(n.rows, a.queries, c), [p, m] = l(n.keys, a.keys, s);
		i.strokeStyle = this.theme.tone("accent"), i.lineWidth = 2, i.strokeRect(Math.min(p, s - m), Math.min(d, c - f), m, f);
	}
	jump(e) {
		let { picture: t, plan: n, shown: r } = this;
		if (t === null || n === null || r === null || e.buttons === 0) return;
		let i = this.mini.getBoundingClientRect(), [a, o] = [(e.clientX - i.left) / i.width, (e.clientY - i.top) / i.height], s = (e, t, n, r) => Cs(e, (t * n - (e.from + e.to) / 2) / (e.to - e.from) * r, n, r);
		this.go({
			rows: s(r.rows, o, t.layer.queries, n.height),
			keys: s(r.keys, this.rightToLeft ? 1 - a : a, t.layer.keys, n.width)
		});
	}
	drawMarks(e, t, n, r) {
		e.strokeStyle = this.theme.tone("accent"), e.save(), e.beginPath(), e.rect(n.left - 1, n.top - 1, n.width + 2, n.height + 2), e.clip(), this.marksOf(t, n, r).forEach((t, r) => {
			if (t === null) return;
			let [i, a, o, s] = t;
			e.lineWidth = r === 2 ? 3 : 2, e.setLineDash(r === 3 ? [6, 4] : []), e.strokeRect(n.left + i, n.top + a, o, s);
		}), e.setLineDash([]), e.restore();
	}
	marksOf({ active: e, near: { excerpt: t, matrix: n } }, r, a) {
		let { frame: o } = this, s = o && [
			Math.min(o.from.x, o.to.x) - r.left,
			Math.min(o.from.y, o.to.y) - r.top,
			Math.abs(o.to.x - o.from.x),
			Math.abs(o.to.y - o.from.y)
		], [c, l] = e?.side === "target" ? [e.index, e.partner] : [e?.partner, e?.index], u = c === void 0 ? null : i(t.rows, c, n.rows), d = l === void 0 ? null : i(t.keys, l, n.columns), f = u && $(a.rows, u.from, r.height), p = u && Math.max($(a.rows, u.to, r.height) - (f ?? 0), 1), m = d && this.x(this.rightToLeft ? d.to : d.from, r, a) - r.left, h = d && Math.max((d.to - d.from) / (a.keys.to - a.keys.from) * r.width, 1);
		return [
			f === null || p === null ? null : [
				0,
				f,
				r.width,
				p
			],
			m === null || h === null ? null : [
				m,
				0,
				h,
				r.height
			],
			f === null || p === null || m === null || h === null ? null : [
				m,
				f,
				h,
				p
			],
			s
		];
	}
};
function Is(e, t, n) {
	if (n < e.from || n >= e.to) return null;
	let r = e.to - e.from;
	return Math.floor(((n - e.from + 1) * t - 1) / r);
}
function Ls(e, t) {
	return {
		from: Math.max(e.from, Math.floor(t.from)),
		to: Math.min(e.to, Math.ceil(t.to))
	};
}
function Rs({ from: e, to: t }) {
	return Array.from({ length: Math.max(t - e, 0) }, (t, n) => e + n);
}
function zs(e, t) {
	return t.partner === void 0 ? null : t.side === "target" ? Oe(e, t.index, t.partner) : Oe(e, t.partner, t.index);
}
// src/map-panel.tsx
function Bs() {
	let e = J(), { now: t } = e, n = t.sheet.value, r = e.layer.value, i = e.weights.value, a = t.view.value, o = K(!1);
	if (n === null || r === null || i === null || a === null) return null;
	let s = e.kind;
	return /* @__PURE__ */ O(A, null, /* @__PURE__ */ O("div", { class: "pane-head" }, /* @__PURE__ */ O(Vs, {
		part: a,
		editing: o.value,
		edit: () => o.value = !o.value
	}), /* @__PURE__ */ O("div", { class: "tools" }, /* @__PURE__ */ O("button", {
		type: "button",
		title: "Closer (+)",
		"aria-label": "Closer",
		onClick: () => e.map?.closer(2)
	}, "+"), /* @__PURE__ */ O("button", {
		type: "button",
		title: "Farther (−)",
		"aria-label": "Farther",
		onClick: () => e.map?.closer(.5)
	}, "−"), /* @__PURE__ */ O(vs, null))), o.value && /* @__PURE__ */ O(Hs, { view: a }), /* @__PURE__ */ O("p", {
		id: "coarse",
		class: "hint",
		hidden: !n.coarse || n.preview && !pn(r, a)
	}, ki(n.coarse ? n.excerpt : null, n.preview || n.tile.pyramidLevel > 0 ? n.tile : null)), /* @__PURE__ */ O(Us, { label: Mi(i.rows, i.columns, s, n.coarse) }), /* @__PURE__ */ O(Gs, null));
}
function Vs({ part: e, editing: t, edit: n }) {
	let r = J(), { now: i } = r, a = i.answer.value, o = i.sheet.value;
	if (a === null) return null;
	let s = r.layer.value, c = s?.heads ?? 0, l = o !== null && s !== null && yn(s, o.excerpt), u = o?.head ?? i.head.value;
	return /* @__PURE__ */ O("nav", {
		class: "crumbs",
		"aria-label": "What is shown"
	}, /* @__PURE__ */ O("span", {
		id: "choices",
		class: "choices",
		hidden: a.layers.length < 2 && c < 2
	}, /* @__PURE__ */ O("select", {
		id: "layer",
		"aria-label": "Layer",
		value: String(i.layer.value),
		title: r.layer.value?.name,
		onChange: (e) => r.chooseLayer(Number(e.currentTarget.value))
	}, yr(a.layers).map(([e, t]) => /* @__PURE__ */ O("optgroup", {
		key: e,
		label: e || "layers"
	}, t.map((e) => /* @__PURE__ */ O("option", {
		key: e,
		value: String(e)
	}, a.layers[e]?.title))))), /* @__PURE__ */ O("span", {
		"aria-hidden": "true",
		class: "between"
	}, "›"), /* @__PURE__ */ O("label", null, "head", " ", /* @__PURE__ */ O(di, {
		id: "head",
		value: u === null ? "" : String(u),
		options: [...o?.head === null || l ? [["", "mean of all"]] : [], ...Array.from({ length: c }, (e, t) => [String(t), String(t)])],
		choose: (e) => r.chooseHead(e === "" ? null : Number(e))
	})), /* @__PURE__ */ O("span", {
		"aria-hidden": "true",
		class: "between"
	}, "›")), /* @__PURE__ */ O("button", {
		id: "part",
		type: "button",
		class: "quiet",
		"aria-expanded": t,
		title: "Choose a part by numbers",
		onClick: n
	}, Si(e)));
}
function Hs({ view: t }) {
	let n = J(), r = n.layer.value, i = U(null);
	if (r === null) return null;
	let o = u(t, e(r)), s = (e) => {
		let t = (t) => i.current?.elements.namedItem(`${e}-${t}`);
		return {
			from: Number(t("first").value),
			to: Number(t("last").value) + 1
		};
	}, c = (e, { from: t, to: n }, r, a, o) => /* @__PURE__ */ O("fieldset", null, /* @__PURE__ */ O("legend", null, a), ["first", "last"].map((a) => /* @__PURE__ */ O("input", {
		key: a,
		id: `${e}-${a}`,
		name: `${e}-${a}`,
		type: "number",
		min: 0,
		max: r - 1,
		required: !0,
		"aria-label": `${a === "first" ? "First" : "Last"} place that ${o}`,
		value: a === "first" ? t : n - 1,
		onInput: () => {
			let t = i.current?.elements.namedItem(`${e}-last`), { from: n, to: r } = s(e);
			t.setCustomValidity(r <= n ? "The last place comes before the first." : "");
		}
	})), "of ", /* @__PURE__ */ O("span", { id: `${e}-most` }, `0–${(r - 1).toLocaleString("en")}`));
	return /* @__PURE__ */ O("form", {
		id: "frame",
		class: "frame",
		ref: i,
		autocomplete: "off",
		onSubmit: (e) => {
			e.preventDefault(), n.view({
				rows: s("rows"),
				keys: s("keys")
			});
		}
	}, c("rows", t.rows, r.queries, "Rows, which look", "looks"), c("keys", t.keys, r.keys, "Keys, looked at", "is looked at"), /* @__PURE__ */ O("div", { class: "buttons" }, /* @__PURE__ */ O("button", { type: "submit" }, "Show"), /* @__PURE__ */ O("button", {
		type: "button",
		id: "farther",
		disabled: o,
		onClick: () => n.view(a(t, r))
	}, "Farther"), /* @__PURE__ */ O("button", {
		type: "button",
		id: "whole",
		disabled: o,
		onClick: () => n.view(e(r))
	}, "Whole map")));
}
function Us({ label: t }) {
	let n = J(), r = U(null), i = U(null), a = U(null), o = U(null);
	Gn(() => {
		if (r.current === null || i.current === null) return;
		let e = ({ row: e, column: t }) => ({
			side: "target",
			index: e,
			partner: t
		});
		return n.map = new Fs(n.theme, r.current, i.current, {
			point: (t, r) => {
				n.point(e(t)), r && (n.spoken.value = Ws(n, e(t)));
			},
			click: (t) => n.pin(e(t)),
			view: (e, t) => n.view(e, t),
			here: () => Lr(n.state),
			leave: () => {
				let e = n.state.pointed;
				e && n.point({
					side: e.side,
					index: e.index
				});
			}
		}), s(), () => n.map = null;
	}, []);
	let s = () => {
		let { now: t, theme: r } = n;
		r.changes.value;
		let [i, s, c] = [
			t.sheet.value,
			n.layer.value,
			n.weights.value
		], [l, d, f, p] = [
			t.view.value,
			t.scale.value,
			t.overview.value,
			t.head.value
		], m = t.pinned.value ?? t.pointed.value;
		if (i === null || s === null || c === null) return;
		let h = f?.tiles[i.layer], g = h?.rows === s.queries && h.keys === s.keys;
		if (a.current?.matrix !== c || a.current.excerpt !== i.excerpt || a.current.scale !== d) {
			if (a.current = {
				matrix: c,
				excerpt: i.excerpt,
				shade: Le(d, c, s.keys),
				scale: d
			}, u(i.excerpt, e(s))) o.current = a.current;
			else {
				let t = i.head ?? p, n = h === void 0 || t === null && !g ? null : t === null ? Ee(h) : we(h, t);
				o.current = n && {
					matrix: n,
					excerpt: e(s),
					shade: Le(d, n, s.keys),
					scale: d
				};
			}
		}
		n.map?.draw({
			layer: s,
			view: l ?? i.excerpt,
			far: o.current,
			near: a.current,
			rows: i.rows,
			columns: i.keys,
			rightToLeft: f?.rightToLeft.has(i.layer) ?? !1,
			ramp: r.ramp,
			gold: n.gold.value,
			active: m
		});
	};
	return q(s), /* @__PURE__ */ O("div", {
		class: "map-room",
		id: "map-room",
		ref: i
	}, /* @__PURE__ */ O("div", { class: "stack" }, /* @__PURE__ */ O("canvas", {
		id: "map",
		ref: r,
		tabIndex: 0,
		role: "application",
		"aria-roledescription": "map of weights",
		"aria-label": t,
		"aria-describedby": "readout map-help"
	})), /* @__PURE__ */ O("p", {
		id: "map-help",
		class: "unseen"
	}, "Arrow keys move the crosshair, plus and minus zoom, 0 shows all, Enter keeps a cell."));
}
function Ws(e, t) {
	let [n, r] = [e.now.sheet.value, e.weights.value];
	if (t === null || n === null || r === null || t.partner === void 0) return "";
	let [i, a] = t.side === "target" ? [n.rows, n.keys] : [n.keys, n.rows], o = zs(r, t), s = i[t.index]?.text ?? "";
	return o === null ? "" : `${R(s)} → ${R(a[t.partner]?.text ?? "")}: ${F(o)}`;
}
function Gs() {
	let e = J(), { now: t, theme: n } = e, r = U(null), i = e.weights.value, a = t.scale.value;
	return q(() => {
		n.changes.value;
		let e = r.current?.getContext("2d");
		e && sa(e, n.ramp, [], {
			x: 0,
			y: 0,
			width: 256
		}, "", "");
	}), i === null ? null : /* @__PURE__ */ O("div", { class: "map-foot" }, /* @__PURE__ */ O("label", { class: "scale" }, "Colours", " ", /* @__PURE__ */ O(di, {
		id: "scale",
		value: a,
		options: Ie,
		choose: (t) => e.set({ scale: t })
	})), /* @__PURE__ */ O("span", { class: "legend" }, /* @__PURE__ */ O("canvas", {
		id: "legend",
		ref: r,
		width: 256,
		height: 10,
		"aria-hidden": "true"
	}), /* @__PURE__ */ O("span", {
		id: "ticks",
		class: "ticks"
	}, ze(a, Me(i)).map(({ share: e, text: t }) => /* @__PURE__ */ O("span", {
		key: e,
		ref: (t) => t?.style.setProperty("--share", `${(e * 100).toFixed(1)}%`)
	}, t)))), /* @__PURE__ */ O(Ks, null));
}
function Ks() {
	let e = J(), { pinned: t, pointed: n } = e.now;
	return /* @__PURE__ */ O("span", {
		id: "readout",
		class: "readout"
	}, Ws(e, Lr({
		pinned: t.value,
		pointed: n.value
	})));
}
// src/separator.tsx
var qs = 24;
function Js({ id: e, label: t, orientation: n, property: r, pane: i, least: a, most: o, sign: s, frame: c }) {
	let l = U(null), u = U(null), d = (e) => n === "vertical" ? e.clientX : e.clientY, f = () => {
		let e = c.current?.querySelector(`.pane.${i}`)?.getBoundingClientRect();
		return Math.round((n === "vertical" ? e?.width : e?.height) ?? a);
	}, p = (e) => {
		let t = Math.round(Math.min(Math.max(e, a), o));
		c.current?.style.setProperty(r, `${t}px`), u.current?.setAttribute("aria-valuenow", String(t));
	};
	return H(() => u.current?.setAttribute("aria-valuenow", String(f())), []), /* @__PURE__ */ O("div", {
		id: e,
		ref: u,
		class: `separator ${n}`,
		role: "separator",
		tabIndex: 0,
		"aria-orientation": n,
		"aria-label": t,
		"aria-valuenow": a,
		"aria-valuemin": a,
		"aria-valuemax": o,
		onPointerDown: (e) => {
			e.currentTarget.setPointerCapture(e.pointerId), l.current = {
				at: d(e),
				size: f()
			};
		},
		onPointerMove: (e) => {
			l.current !== null && p(l.current.size + s * (d(e) - l.current.at));
		},
		onPointerUp: () => l.current = null,
		onPointerCancel: () => l.current = null,
		onKeyDown: (e) => {
			let t = (n === "vertical" ? ["ArrowLeft", "ArrowRight"] : ["ArrowUp", "ArrowDown"]).indexOf(e.key);
			if (t >= 0) p(f() + s * (t === 0 ? -24 : qs));
			else if (e.key === "Home") p(a);
			else if (e.key === "End") p(o);
			else return;
			e.preventDefault();
		}
	});
}
// src/screen.tsx
function Ys({ explorer: e }) {
	dr();
	let t = K(!1), { now: n } = e, r = n.problem.value?.gone === !0, i = (n) => {
		let [r] = n.composedPath(), i = r instanceof HTMLElement && /^(INPUT|TEXTAREA|SELECT)$/.test(r.tagName);
		n.key === "Escape" && !t.value && e.unpin(), n.key === "?" && !i && (n.preventDefault(), t.value = !0);
	};
	return H(() => {
		if (e.address !== null) return document.addEventListener("keydown", i), () => document.removeEventListener("keydown", i);
	}, []), /* @__PURE__ */ O(si, { value: e }, /* @__PURE__ */ O("div", {
		class: r ? "screen gone" : "screen",
		onKeyDown: (t) => {
			e.address === null && i(t);
		}
	}, /* @__PURE__ */ O(Xs, { help: t }), /* @__PURE__ */ O(Li, null), /* @__PURE__ */ O(Qs, null), /* @__PURE__ */ O(tc, null), /* @__PURE__ */ O(ec, null), /* @__PURE__ */ O(ha, { open: t })));
}
function Xs({ help: e }) {
	let t = J(), n = t.now.model.value, r = n?.facts ?? {}, { door: i } = t;
	return /* @__PURE__ */ O("header", { class: "head" }, /* @__PURE__ */ O("h1", { class: "mark" }, /* @__PURE__ */ O("svg", {
		viewBox: "0 0 12 12",
		"aria-hidden": "true"
	}, /* @__PURE__ */ O("path", {
		class: "pale",
		d: "M0 0h12v12H0z"
	}), /* @__PURE__ */ O("path", { d: "M0 0h4v4H0zM4 4h4v4H4zM8 8h4v4H8z" })), "attlas"), n?.sources && /* @__PURE__ */ O("select", {
		id: "subject",
		"aria-label": "What is shown",
		value: String(i.source),
		onChange: (e) => i.choose?.(Number(e.currentTarget.value))
	}, n.sources.map((e, t) => /* @__PURE__ */ O("option", {
		key: t,
		value: String(t)
	}, e))), /* @__PURE__ */ O(Pi, null), /* @__PURE__ */ O("p", {
		id: "facts",
		class: "facts",
		title: [...fi(r), pi(r)].filter((e) => e !== "").join(" · ")
	}, fi(r).map((e) => /* @__PURE__ */ O("span", { key: e }, e))), /* @__PURE__ */ O("button", {
		id: "help",
		type: "button",
		class: "round",
		"aria-label": "Help",
		title: "Help (?)",
		onClick: () => e.value = !0
	}, "?"));
}
var Zs = [
	["heads", "Heads"],
	["map", "Map"],
	["words", "Words"]
];
function Qs() {
	let e = J(), { now: t } = e, n = U(null), r = K("map"), i = Un(() => [
		/* @__PURE__ */ O(pa, null),
		/* @__PURE__ */ O(Bs, null),
		/* @__PURE__ */ O(ro, null),
		/* @__PURE__ */ O(es, null)
	])[0], a = (t.answer.value?.layers ?? []).reduce((e, { heads: t }) => e + t, 0) > 1, o = t.sheet.value !== null, s = t.translating.value !== null || t.reading.value && t.sheet.value?.preview !== !0, c = (e) => {
		let t = n.current?.querySelector(`.pane.${e}`);
		n.current?.scrollTo({ left: t instanceof HTMLElement ? t.offsetLeft : 0 });
	};
	return q(() => {
		t.sheet.value !== null && requestAnimationFrame(() => c(r.peek()));
	}), o ? /* @__PURE__ */ O(A, null, /* @__PURE__ */ O("nav", {
		class: "pane-tabs",
		"aria-label": "Panes"
	}, Zs.filter(([e]) => e !== "heads" || a).map(([e, t]) => /* @__PURE__ */ O("button", {
		key: e,
		type: "button",
		"aria-pressed": r.value === e,
		onClick: () => c(e)
	}, t))), /* @__PURE__ */ O("main", {
		id: "looking",
		ref: n,
		class: `panes${s ? " stale" : ""}${a ? "" : " single"}`,
		"aria-busy": s,
		onScroll: () => {
			let e = n.current;
			if (e === null || e.scrollWidth <= e.clientWidth) return;
			let t = Zs.filter(([e]) => e !== "heads" || a);
			r.value = t[Math.round(e.scrollLeft / e.clientWidth)]?.[0] ?? "map";
		}
	}, /* @__PURE__ */ O("section", {
		id: "heads",
		class: "pane heads",
		"aria-labelledby": "heads-title",
		hidden: !a
	}, i[0]), /* @__PURE__ */ O(Js, {
		id: "left",
		label: "Width of the heads",
		orientation: "vertical",
		property: "--left",
		pane: "heads",
		least: 150,
		most: 640,
		sign: 1,
		frame: n
	}), /* @__PURE__ */ O("section", {
		class: "pane map",
		"aria-label": "Map"
	}, i[1]), /* @__PURE__ */ O(Js, {
		id: "right",
		label: "Width of the words",
		orientation: "vertical",
		property: "--right",
		pane: "words",
		least: 220,
		most: 760,
		sign: -1,
		frame: n
	}), /* @__PURE__ */ O("section", {
		class: "pane words",
		"aria-label": "Words"
	}, i[2]), /* @__PURE__ */ O(Js, {
		id: "below",
		label: "Height of the inspector",
		orientation: "horizontal",
		property: "--below",
		pane: "inspector",
		least: 120,
		most: 560,
		sign: -1,
		frame: n
	}), /* @__PURE__ */ O("section", {
		class: "pane inspector",
		"aria-label": "Inspector"
	}, i[3]))) : /* @__PURE__ */ O("main", {
		id: "looking",
		class: "nothing",
		hidden: t.answer.value !== null && t.answer.value.map === null
	}, /* @__PURE__ */ O("p", { class: "hint" }, $s(e)));
}
function $s({ now: e }) {
	return e.problem.value === null ? e.model.value === null ? "Opening the model…" : e.translating.value !== null || e.reading.value ? "" : e.model.value.texts === null ? "Type a text above. What the model reads and where it looks stands here." : "There is no text here." : "";
}
function ec() {
	return /* @__PURE__ */ O("p", {
		class: "unseen",
		id: "spoken",
		role: "status",
		"aria-live": "polite"
	}, J().spoken.value);
}
function tc() {
	let e = J(), t = e.notice.value;
	return H(() => {
		if (t === "") return;
		let n = setTimeout(() => e.notice.value = "", 8e3);
		return () => clearTimeout(n);
	}, [t]), /* @__PURE__ */ O("p", {
		id: "notice",
		class: "notice",
		role: "status",
		hidden: t === ""
	}, t);
}
// src/theme.ts
var nc = [
	"#0067a5",
	"#b8480c",
	"#007a55",
	"#8b3a93",
	"#555555",
	"#8a6a00"
], rc = [
	"#6cc0f5",
	"#ff9d5c",
	"#3fd0a3",
	"#e79be0",
	"#d2d2d2",
	"#ecd84a"
], ic = class {
	constructor(e, t) {
		this.frame = e, this.scheme = t, this.preference = matchMedia("(prefers-color-scheme: dark)"), this.forced = matchMedia("(forced-colors: active)"), this.count = G(0), this.read = /* @__PURE__ */ new Map(), this.changed = () => this.apply(), this.tones = getComputedStyle(e);
		for (let e of [this.preference, this.forced]) e.addEventListener("change", this.changed);
		this.apply();
	}
	get dark() {
		return this.scheme === "dark" || this.scheme === "auto" && this.preference.matches;
	}
	get ramp() {
		return this.dark ? Wi : Ui;
	}
	tone(e) {
		return this.kept(e, () => this.tones.getPropertyValue(`--${e}`).trim());
	}
	get font() {
		return this.kept("font", () => this.tones.fontFamily);
	}
	kept(e, t) {
		let n = this.read.get(e) ?? t();
		return this.read.set(e, n), n;
	}
	get changes() {
		return this.count;
	}
	get differences() {
		return this.dark ? Ki : Gi;
	}
	get heads() {
		return this.dark ? rc : nc;
	}
	dispose() {
		for (let e of [this.preference, this.forced]) e.removeEventListener("change", this.changed);
	}
	apply() {
		this.frame.classList.toggle("dark", this.dark), this.read.clear(), this.count.value += 1;
	}
};
// src/mount.tsx
function ac(e) {
	let t = new CSSStyleSheet();
	return t.replaceSync(e), t;
}
function oc(e, t, n) {
	let r = document.createElement("div");
	r.className = "attlas-explorer";
	let i = r.attachShadow({ mode: "open" });
	i.adoptedStyleSheets = [n.styles];
	let a = document.createElement("div");
	a.className = "explorer", i.append(a), e.append(r);
	let o = new ic(a, n.scheme ?? "auto"), { address: s } = n, c = new ni(t, o, s ?? null);
	xe(/* @__PURE__ */ O(Ys, { explorer: c }), a);
	let l = s?.whenChanged(() => void c.follow(s.read()));
	return c.begin(s?.read() ?? n.link ?? ""), {
		explorer: c,
		unmount() {
			l?.(), c.stop(), xe(null, a), o.dispose(), r.remove();
		}
	};
}
// src/widget.ts
var sc = class {
	constructor(e) {
		this.channel = e, this.waiting = /* @__PURE__ */ new Map(), this.latest = 0, this.hear = (e, t) => {
			let { id: n, answer: r } = e, i = this.waiting.get(n);
			this.waiting.delete(n);
			let a = t[0], o = a && new Uint8Array(a.buffer, a.byteOffset, a.byteLength);
			i?.({
				said: r,
				content: o ? o.slice().buffer : null
			});
		}, e.on("msg:custom", this.hear);
	}
	close() {
		this.channel.off("msg:custom", this.hear), this.waiting.clear();
	}
	async model() {
		return (await this.ask({ ask: "model" })).said;
	}
	translate() {
		return Promise.reject(new P("a text of this trace", "another text", "open the model with attlas look"));
	}
	async text(e, t) {
		return (await this.ask({
			ask: "text",
			row: e
		}, t)).said;
	}
	async overview(e, t) {
		return sn(cc(await this.ask({
			ask: "overview",
			map: e
		}, t)));
	}
	async statistics(e, t) {
		return (await this.ask({
			ask: "statistics",
			map: e
		}, t)).said;
	}
	async tile(e, t, r, i) {
		let { excerpt: a, head: o, rough: s } = r, c = `${n(a.rows)},${n(a.keys)}`, l = o === null ? {} : { heads: lc({
			from: o,
			to: o + 1
		}) }, u = s ? {
			bits: "8",
			curve: "root"
		} : {}, d = {
			...uc(a),
			shape: c,
			...l,
			...u
		};
		return rn(cc(await this.ask({
			ask: "tile",
			map: e,
			layer: t,
			query: d
		}, i)));
	}
	async tokens(e, t, n, r) {
		let i = {
			ask: "tokens",
			map: e,
			layer: t,
			query: uc(n)
		};
		return (await this.ask(i, r)).said;
	}
	async mechanism(e, { layer: t, head: n, row: r, key: i }, a) {
		let o = {
			head: String(n),
			row: String(r),
			...i === null ? {} : { key: String(i) }
		};
		return (await this.ask({
			ask: "mechanism",
			map: e,
			layer: t,
			query: o
		}, a)).said;
	}
	ask(e, t) {
		let n = ++this.latest;
		return new Promise((r, i) => {
			let a = () => {
				this.waiting.delete(n), i(t?.reason);
			};
			if (t?.aborted) return a();
			t?.addEventListener("abort", a, { once: !0 }), this.waiting.set(n, (e) => {
				t?.removeEventListener("abort", a);
				let n = e.said?.error, o = n === void 0 ? null : P.read(n);
				o === null ? r(e) : i(o);
			}), this.channel.send({
				id: n,
				...e
			});
		});
	}
};
function cc({ content: e }) {
	if (e !== null) return e;
	throw new P("an answer in bytes", "one without", "run the cell again");
}
function lc({ from: e, to: t }) {
	return `${e}:${t}`;
}
function uc({ rows: e, keys: t }) {
	return {
		rows: lc(e),
		keys: lc(t)
	};
}
var dc = { render({ model: e, el: t }) {
	let n = new sc(e), r = oc(t, n, { styles: ac(":host{height:100%;min-height:36rem;display:block}*,:before,:after{box-sizing:border-box}[hidden]{display:none!important}.explorer{--lightningcss-light:initial;--lightningcss-dark: ;color-scheme:light;--paper:#fbfaf6;--raised:#fff;--line:#dedbd0;--edge:#87836f;--ink:#20242b;--quiet:#5a616d;--accent:#b4471a;--action:#1d5f6e;--on-action:#fff;--wrong:#a3232e;--serif:\"Iowan Old Style\", \"Palatino Linotype\", Palatino, \"Book Antiqua\", Georgia, \"Noto Serif\", serif;--sans:ui-sans-serif, system-ui, -apple-system, \"Segoe UI\", \"Noto Sans\", \"Helvetica Neue\", Arial, sans-serif;background:var(--paper);height:100%;color:var(--ink);font:.875rem / 1.5 var(--sans);text-align:start;container:explorer/inline-size}.explorer.dark{--lightningcss-light: ;--lightningcss-dark:initial;color-scheme:dark;--paper:#14161b;--raised:#1c1f26;--line:#343944;--edge:#7b8291;--ink:#eceae3;--quiet:#a3a9b5;--accent:#ff9d6b;--action:#7fd0dd;--on-action:#0c2025;--wrong:#ff9a9f}p,h1,h2,h3,figure,ol,ul,fieldset{border:0;margin:0;padding:0}fieldset{min-width:0}.unseen{clip-path:inset(50%);white-space:nowrap;width:1px;height:1px;position:absolute;overflow:hidden}:focus-visible{outline:3px solid var(--accent);outline-offset:1px}button,select,input,textarea{font:inherit;color:inherit}button,select,summary,input[type=number]{border:1px solid var(--edge);background:var(--raised);min-height:1.75rem;color:var(--ink);border-radius:.35rem;padding:.125rem .5rem}button,summary{cursor:pointer}button:hover:enabled,summary:hover{border-color:var(--action);color:var(--action)}button:disabled{color:var(--quiet);cursor:default}button.main{border-color:var(--action);background:var(--action);color:var(--on-action);white-space:nowrap;padding:.35rem 1rem;font-weight:600}button.main:hover:enabled{color:var(--on-action);filter:brightness(1.1)}button.quiet,button.link{color:var(--quiet);background:0 0;border-color:#0000}button.quiet:hover:enabled,button.link:hover:enabled{color:var(--action);text-decoration:underline}button.round{border-radius:50%;width:1.75rem;padding:0;font-weight:600}select{text-overflow:ellipsis;max-width:100%}input[type=checkbox],input[type=radio],input[type=range]{accent-color:var(--action);margin:0}.crumbs label,.heads-choices label,.ask label,.scale{min-width:0;color:var(--quiet);align-items:center;gap:.4rem;display:inline-flex}.check{min-height:1.5rem;color:var(--quiet);align-items:center;gap:.4rem;display:inline-flex}kbd{border:1px solid var(--line);background:var(--raised);font:.92em var(--sans);border-radius:.3em;padding:.05em .4em}h2{font:600 1rem / 1.4 var(--serif)}.hint,.note{color:var(--quiet);font-size:.8125rem}.empty{max-width:34rem;padding:1.5rem}.screen{flex-direction:column;height:100%;display:flex;position:relative;overflow:hidden}.head{flex-wrap:wrap;align-items:center;gap:.4rem 1rem;padding:.6rem 1rem;display:flex}.mark{font:600 1.1875rem / 1 var(--serif);letter-spacing:.01em;align-items:center;gap:.5rem;display:flex}.mark svg{width:1rem;height:1rem;fill:var(--action)}.mark .pale{opacity:.25}.ask{flex:100%;order:4;min-width:0}.ask select,.head>select{max-width:min(40rem,70cqw)}.field{border:1px solid var(--edge);background:var(--raised);border-radius:.6rem;align-items:center;gap:.5rem;padding:.25rem .25rem .25rem .4rem;display:flex}.field:focus-within{border-color:var(--action);outline:2px solid var(--action);outline-offset:-1px}textarea{resize:none;min-width:0;max-height:6rem;font:1.0625rem / 1.45 var(--serif);background:0 0;border:0;outline:0;flex:1;padding:.15rem .3rem}textarea:focus-visible{outline:0}.facts{min-width:0;color:var(--quiet);text-align:end;text-overflow:ellipsis;white-space:nowrap;flex:1 1 0;font-size:.8125rem;overflow:hidden}.facts span:not(:last-child):after{content:\" · \"}.messages{padding:0 1rem}.messages>:last-child{margin-bottom:.4rem}.result{flex-wrap:wrap;align-items:baseline;gap:0 .75rem;max-height:5.4rem;display:flex;overflow:auto}.result h2{color:var(--quiet);font:400 .8125rem / 1.4 var(--sans)}.translation{font:1.25rem / 1.4 var(--serif);text-wrap:pretty;overflow-wrap:anywhere}.remark,.progress button{margin-inline-start:.5rem}.progress{color:var(--quiet)}.problem{border-inline-start:4px solid var(--wrong);background:color-mix(in srgb, var(--wrong) 9%, var(--paper));overflow-wrap:anywhere;border-radius:.3rem;flex-wrap:wrap;justify-content:space-between;align-items:center;gap:.3rem 1rem;margin-bottom:.4rem;padding:.45rem .75rem;display:flex}.pane,.translation{transition:opacity .2s}.stale>.pane,.stale .translation{opacity:.55;transition-delay:.25s}.gone .panes{opacity:.45}.notice{border:1px solid var(--edge);background:var(--raised);overflow-wrap:anywhere;border-radius:.5rem;max-width:min(30rem,90cqw);padding:.5rem .9rem;position:absolute;inset:auto 1rem 1rem auto}.nothing{flex:1;place-content:center;padding:2rem;display:grid}.pane-tabs{border-bottom:1px solid var(--line);gap:.25rem;padding:0 1rem;display:flex}.pane-tabs button,.tabs button{min-height:2.25rem;color:var(--quiet);background:0 0;border:0;border-bottom:3px solid #0000;border-radius:0;padding:0 .75rem}.pane-tabs button{flex:1;min-height:2.75rem}.pane-tabs button[aria-pressed=true],.tabs button[aria-selected=true]{border-bottom-color:var(--action);color:var(--ink);font-weight:600}.panes{scroll-snap-type:x mandatory;scroll-behavior:smooth;scrollbar-width:none;flex:1;grid-template:\"heads map words\"minmax(0,2fr)\"heads map inspector\"minmax(0,3fr)/100% 100% 100%;min-height:0;display:grid;overflow:auto hidden}.panes.single{grid-template:\"map words\"minmax(0,2fr)\"map inspector\"minmax(0,3fr)/100% 100%}.pane{contain:strict;scroll-snap-align:start;flex-direction:column;min-width:0;min-height:0;padding:.5rem 1rem;display:flex;overflow:hidden}.pane.heads{grid-area:heads}.pane.map{grid-area:map}.pane.words{grid-area:words}.pane.inspector{border-top:1px solid var(--line);grid-area:inspector;padding-top:0}.separator{display:none}.pane-head{flex-wrap:wrap;justify-content:space-between;align-items:center;gap:.25rem .75rem;min-height:2.25rem;display:flex}#head{max-width:6rem}#layer{max-width:12rem}.tools{gap:.25rem;margin-inline-start:auto;display:flex}.tools>button{width:1.75rem;padding:0}@container explorer (width>=62.5rem){.head{flex-wrap:nowrap}.ask{flex:30rem;order:0}.ask select{max-width:34rem}.facts{flex:0 auto;max-width:26rem;margin-inline-start:auto}.pane-tabs{display:none}.panes{grid-template:\"heads left map right words\" minmax(0, 1fr) \"below below below below below\" auto \"inspector inspector inspector inspector inspector\" minmax(0, var(--below,252px)) / minmax(0, var(--left,clamp(220px, 23cqw, 380px))) 9px minmax(16rem, 1fr) 9px minmax(0, var(--right,clamp(260px, 27cqw, 440px)));border-top:1px solid var(--line);overflow:hidden}.panes.single{grid-template:\"map right words\" minmax(0, 1fr) \"below below below\" auto \"inspector inspector inspector\" minmax(0, var(--below,252px)) / minmax(16rem, 1fr) 9px minmax(0, var(--right,clamp(260px, 30cqw, 480px)))}.single #left{display:none}#left{grid-area:left}#right{grid-area:right}#below{grid-area:below}.separator{touch-action:none;display:block;position:relative}.separator:before{background:var(--line);content:\"\";position:absolute}.separator.vertical{cursor:col-resize}.separator.vertical:before{inset:0 4px}.separator.horizontal{cursor:row-resize;height:9px}.separator.horizontal:before{inset:4px 0}.separator:hover:before,.separator:focus-visible:before{background:var(--action)}.separator:focus-visible{outline-offset:-3px}.pane.inspector{border-top:0}}.heads-choices{color:var(--quiet);flex-wrap:wrap;align-items:center;gap:.25rem 1rem;padding-bottom:.5rem;font-size:.8125rem;display:flex}.heads-choices select{max-width:10rem}.grid-room{flex:1;min-height:0;overflow:auto}.stack{width:max-content;position:relative}.marks{pointer-events:none;position:absolute;inset:0 auto auto 0}#grid{cursor:pointer;display:block}#grid-readout{min-height:2.5rem;color:var(--ink);font-variant-numeric:tabular-nums;padding-top:.25rem}.crumbs,.choices{font-variant-numeric:tabular-nums;flex-wrap:wrap;align-items:center;gap:.25rem .4rem;min-width:0;display:flex}.between{color:var(--quiet)}.frame{color:var(--quiet);font-variant-numeric:tabular-nums;flex-wrap:wrap;align-items:end;gap:.4rem 1rem;padding:.25rem 0 .5rem;font-size:.8125rem;display:flex}.frame legend{padding:0}.frame input{width:5.5em;margin-inline-end:.25rem}.buttons{flex-wrap:wrap;gap:.25rem;display:flex}.minimap{border:1px solid var(--edge);background:var(--paper);cursor:pointer;touch-action:none;position:absolute;inset:auto 0 0 auto}.map-room{flex:1;place-content:center;min-height:0;display:grid;position:relative;overflow:hidden}#map{cursor:crosshair;display:block}.crosshair{pointer-events:none;position:absolute;overflow:clip}.crosshair>div{box-shadow:0 0 0 1px var(--accent), inset 0 0 0 1px var(--accent);will-change:transform;position:absolute;inset:0 auto auto 0}.crosshair>:nth-child(3){box-shadow:0 0 0 2px var(--accent), inset 0 0 0 1px var(--accent)}.crosshair>:last-child{border:2px dashed var(--accent);box-shadow:none}.map-foot{color:var(--quiet);flex-wrap:wrap;align-items:center;gap:.25rem 1.25rem;padding-top:.5rem;font-size:.8125rem;display:flex}.legend{width:15rem;max-width:calc(100% - 2rem);margin:.25rem .75rem 0;position:relative}#legend{border-radius:3px;width:100%;height:10px;display:block}.ticks{font-variant-numeric:tabular-nums;white-space:nowrap;height:1.35em;font-size:.75rem;display:block;position:relative}.ticks span{left:var(--share);position:absolute;transform:translate(-50%)}.ticks span:last-child:nth-child(2){transform:translate(-100%)}.readout{min-height:1.5em;color:var(--ink);text-align:end;font-variant-numeric:tabular-nums;overflow-wrap:anywhere;flex:10rem}.menu{position:relative}summary{align-items:center;list-style:none;display:inline-flex}summary::-webkit-details-marker{display:none}.menu-items{z-index:2;border:1px solid var(--edge);background:var(--raised);border-radius:.5rem;flex-direction:column;min-width:12rem;padding:.25rem;display:flex;position:absolute;inset:calc(100% + .25rem) 0 auto auto}.menu-items button{text-align:start;border-color:#0000}.switches{flex-wrap:wrap;align-items:center;gap:.25rem .75rem;font-size:.8125rem;display:flex}.switch{border:1px solid var(--edge);border-radius:.4rem;display:inline-flex;overflow:hidden}.switch label{display:inline-flex;position:relative}.switch input{opacity:0;cursor:pointer;position:absolute;inset:0}.switch span{background:var(--raised);padding:.15rem .6rem}.switch input:checked+span{background:var(--action);color:var(--on-action)}.switch input:focus-visible+span{outline:3px solid var(--accent);outline-offset:-3px}.texts{flex:1;min-height:0;margin-inline-start:-.3rem;padding:.25rem 0 0 .3rem;overflow-y:auto}.texts h3{color:var(--quiet);font:400 .8125rem / 1.4 var(--sans);padding-top:.5rem}.tokens{contain:content;flex-wrap:wrap;margin-inline-start:-.28rem;display:flex}.token{min-width:1.5rem;max-width:100%;color:inherit;font:1.0625rem / 1.35 var(--serif);overflow-wrap:anywhere;background:0 0;border:0;border-radius:.35rem;flex-direction:column;align-items:center;padding:.15rem .24rem .05rem;display:inline-flex}.token:hover:enabled{color:inherit;box-shadow:inset 0 0 0 1px var(--quiet)}.token.begins{margin-inline-start:.24rem}.token:not(.begins){border-start-start-radius:0;border-end-start-radius:0;min-width:.9rem;padding-inline-start:.05rem}.token.continues{border-start-end-radius:0;border-end-end-radius:0;padding-inline-end:.05rem}.share{contain:size layout;min-height:.9rem;font:.6875rem / .9rem var(--sans);font-variant-numeric:tabular-nums;align-self:stretch}.share:before{content:attr(data-share)}.token.special bdi,.bars .special .word{font-family:var(--sans);font-size:.8125rem}.token.special bdi{line-height:1.43438rem}.token.active,.token.partner,.token.active:hover,.token.partner:hover{box-shadow:inset 0 0 0 2px var(--accent)}.token[aria-pressed=true],.token[aria-pressed=true]:hover:enabled{background:var(--accent)!important;color:var(--paper)!important}.token:focus-visible{z-index:1}.more{color:var(--quiet);align-self:center;padding:0 .6rem;font-size:.8125rem}.caution{border-inline-start:3px solid var(--line);color:var(--quiet);margin-top:.5rem;padding:.1rem 0 .1rem .7rem;font-size:.75rem;line-height:1.4}.tabs{scrollbar-width:none;flex:none;gap:.25rem;margin-inline-start:-.75rem;display:flex;overflow-x:auto}.inspected{flex:1;min-height:0;padding-top:.5rem}.inspected h3{font:600 1rem / 1.35 var(--serif);overflow-wrap:anywhere}.distribution,.lines,.statistics,.compare,.doubt{flex-direction:column;gap:.5rem 2rem;height:100%;min-height:0;display:flex;overflow-y:auto}.aside{flex-direction:column;flex:none;align-items:flex-start;gap:.3rem;font-size:.8125rem;display:flex}.aside>*{flex:none;max-width:100%}.aside p{overflow-wrap:anywhere}.whole{max-height:5rem;overflow:auto}.bars{flex:1 0 9rem;min-height:9rem;list-style:none;overflow:hidden auto}.bars.columns{grid-template-rows:repeat(var(--lines), 26px);grid-auto-columns:236px;grid-auto-flow:column;align-content:start;column-gap:24px;display:grid;overflow:auto hidden}.bars .room{height:var(--room)}.bars.columns .room{width:calc(var(--room) - 24px);grid-row:1/-1;height:auto}.bars .line{contain:strict;border-radius:.25rem;grid-template-columns:minmax(3rem,6.5rem) minmax(2.5rem,1fr) 3.5rem;align-items:center;gap:.5rem;height:26px;padding:0 .2rem;display:grid}.bars :is(.word,.number){contain:size layout;height:26px;line-height:26px}.bars .track{background-repeat:no-repeat}.bars .word{text-align:right;text-overflow:ellipsis;white-space:nowrap;overflow:hidden}.track{background:color-mix(in srgb, var(--line) 45%, transparent);border-radius:.2rem;height:.75rem}.bar{border-radius:inherit;height:100%;display:block}.number{color:var(--quiet);font-variant-numeric:tabular-nums;text-align:end;white-space:nowrap;font-size:.8125rem}.bars .top{font-weight:600}.bars .top .number{color:var(--ink)}.bars .partner{box-shadow:inset 0 0 0 2px var(--accent)}.slider{width:100%;max-width:20rem;color:var(--quiet);flex-wrap:wrap;gap:0 .4rem;display:flex}.slider output{color:var(--ink);font-variant-numeric:tabular-nums}.slider input{flex:100%;min-height:1.5rem}.heads-legend{list-style:none}.heads-legend li{align-items:center;gap:.5rem;min-height:1.5rem;display:flex}.heads-legend li button{min-height:1.5rem}.heads-legend .apart{color:var(--quiet)}.swatch{background:var(--paint);border-radius:.2rem;width:1.25rem;height:.35rem}.lines-room{cursor:pointer;flex:1 0 12rem;grid-template:max-content/max-content;min-width:0;min-height:12rem;display:grid;position:relative;overflow:hidden auto}.lines-room.wide{overflow:auto hidden}.spacer,.sticky{grid-area:1/1;place-self:start}.sticky{transition:opacity .12s;display:block;position:sticky;top:0;left:0}.faded{opacity:.35}#interpretation p+p{margin-top:.2rem}.table-room{flex:none;overflow:auto}.statistics table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.8125rem}.statistics th,.statistics td{text-align:end;white-space:nowrap;padding:.05rem .6rem}.statistics thead th{background:var(--paper);color:var(--quiet);font-weight:400;position:sticky;top:0}.statistics tbody th{font-weight:400}.statistics tr.shown :is(td,th){background:color-mix(in srgb, var(--action) 12%, var(--paper));font-weight:600}.statistics .link{min-height:1.5rem;color:var(--ink);padding:0 .4rem;text-decoration:underline}.doubt label{align-items:center;gap:.4rem;width:100%;min-height:1.75rem;display:flex}.doubt :is(select,input){flex:6rem;min-width:0}.notes textarea{border:1px solid var(--edge);background:var(--paper);width:100%;color:inherit;font:inherit;resize:vertical;border-radius:.3rem;padding:.4rem}.notes ul{flex:auto;min-height:0;list-style:none;overflow:hidden auto}.notes li{border-bottom:1px solid var(--line);max-width:40rem;padding-block:.4rem}.notes li p{overflow-wrap:anywhere;white-space:pre-wrap}.notes :is(li button,li a){min-height:1.5rem}.doubt table{border-collapse:collapse;font-variant-numeric:tabular-nums;width:100%;font-size:.8125rem}.doubt caption{text-align:start;color:var(--quiet);padding-bottom:.2rem}.doubt :is(th,td){border-top:1px solid var(--line);text-align:end;vertical-align:baseline;white-space:nowrap;padding:.1rem .5rem}.doubt thead :is(th,td){color:var(--quiet);border-top:0;font-weight:400}.doubt :is(th:first-child,.five,.impossible,thead th:last-child){text-align:start;white-space:normal}.doubt tbody th{overflow-wrap:anywhere;min-width:7rem;font-weight:600}.doubt .table-room .note{padding-top:.5rem}.five{min-width:9rem}.five span{color:var(--quiet);margin-inline-end:.6rem;display:inline-block}.five .own{color:var(--ink);font-weight:600}.seek{padding:.5rem 0}.slopes{flex:none;min-width:0;font-size:.8125rem}.slopes figcaption{color:var(--quiet);padding-bottom:.2rem}.slopes b{color:var(--ink)}.slopes ol{margin:0;padding:2px;list-style:none}.slope{border-radius:.25rem;grid-template-columns:minmax(3rem,6rem) minmax(2rem,1fr) 3.4rem minmax(3rem,1fr) 3.4rem;align-items:center;gap:.4rem;min-height:1.5rem;padding:0 .2rem;display:grid}.slope.partner{box-shadow:inset 0 0 0 2px var(--accent)}.slope .word{text-align:end;text-overflow:ellipsis;white-space:nowrap;overflow:hidden}.slope .track{position:relative;overflow:hidden}.slope .bar{background:var(--action);position:absolute;inset:0 auto 0 0}.slope .bar.other{background:var(--ink);inset-block:60% 0}.slope .middle{background:linear-gradient(var(--edge), var(--edge)) center / 1px 100% no-repeat, color-mix(in srgb, var(--line) 45%, transparent)}.slope .bar.up{inset-inline:50% auto}.slope .bar.down{background:var(--accent);inset-inline:auto 50%}.mechanism .check{width:auto}.mechanism .check input{flex:none}.mechanism .slider{flex-wrap:wrap}.mechanism .slider input{flex:100%}.mechanism .buttons button{min-height:1.5rem}.mechanism .partner :is(th,td){background:color-mix(in srgb, var(--action) 12%, var(--paper))}.mechanism .link{max-width:100%;min-height:1.5rem;color:var(--ink);text-align:start;overflow-wrap:anywhere;padding:0 .2rem;text-decoration:underline}.mechanism .link[aria-pressed=true]{font-weight:600}.mechanism tbody th{min-width:4rem}.mechanism .wide{text-align:start;width:40%;min-width:7rem}.mechanism .wide .track{vertical-align:middle;width:calc(100% - 3.8rem);display:inline-block;overflow:hidden}.mechanism .wide .bar{background:var(--action)}.mechanism .wide .number{width:3.6rem;display:inline-block}.tree{flex:none;min-width:0;font-size:.8125rem;overflow:auto}.tree ul{flex-direction:column;gap:.3rem;margin:0;padding:0;list-style:none;display:flex}.tree li>ul{border-inline-start:2px solid var(--edge);margin-inline-start:.5rem;padding-inline-start:.6rem}.tree .words{overflow-wrap:anywhere;padding:.1rem 0;display:block}.tree bdi{font:1rem / 1.35 var(--serif)}.tree .own bdi{font-weight:600}.tree .number{text-align:start;white-space:normal;display:block}.beams .five .link{min-height:1.5rem;margin-inline-end:.3rem;padding:0 .3rem;text-decoration:underline}.beams .partner :is(th,td){background:color-mix(in srgb, var(--action) 12%, var(--paper))}.formula .number{color:var(--ink)}.formula{font-variant-numeric:tabular-nums;flex-direction:column;gap:.2rem;display:flex}.strip{margin-bottom:.45rem}.strip span{overflow-wrap:anywhere;display:block}.strip small{color:var(--quiet);font-variant-numeric:tabular-nums}.strip canvas{display:block}.places{min-width:0;color:var(--quiet);flex-direction:column;flex:1 0 8rem;font-size:.8125rem;display:flex}.places b{color:var(--ink);font-weight:600}.places canvas{flex:1;width:100%;min-height:6rem}.small-map{flex-direction:column;flex:1 0 12rem;min-width:0;font-size:.8125rem;display:flex}.small-map figcaption{text-overflow:ellipsis;white-space:nowrap;overflow:hidden}.small-room{flex:1;min-height:8rem;margin-bottom:.4rem;overflow:hidden}.small-map canvas{display:block}@container explorer (width>=62.5rem){.distribution,.lines,.statistics,.compare,.doubt{flex-direction:row;overflow:hidden}.aside{width:19rem;max-height:100%;overflow-y:auto}.statistics .aside{width:22rem}.doubt .table-room{flex:32rem}.beams .tree{flex:24rem}.doubt .slopes{flex:0 21rem;overflow:hidden auto}.bars,.lines-room{min-height:0}.statistics .table-room{max-width:50%}.small-map{flex:1 1 0}.small-room,.places canvas{min-height:0}}dialog{border:1px solid var(--edge);background:var(--paper);max-width:min(44rem,94vw);max-height:90vh;color:var(--ink);border-radius:.75rem;padding:0}dialog::backdrop{background:#00000073}.help{flex-direction:column;gap:.75rem;padding:1.5rem;display:flex}.help h2{font-size:1.25rem}.help table{border-collapse:collapse}.help :is(th,td){text-align:start;vertical-align:top;padding:.15rem .75rem .15rem 0}.help .main{align-self:end}@media (prefers-reduced-motion:reduce){*{scroll-behavior:auto!important;transition:none!important}}@media (forced-colors:active){.explorer,.explorer.dark{--paper:Canvas;--raised:Canvas;--line:CanvasText;--edge:CanvasText;--ink:CanvasText;--quiet:CanvasText;--accent:Highlight;--action:Highlight;--on-action:HighlightText;--wrong:CanvasText}.token.active,.token.partner,.bars .partner,.slope.partner{outline-offset:-2px;outline:2px solid highlight}.token[aria-pressed=true]{outline:3px solid highlight}:is(.statistics .shown,.mechanism .partner,.beams .partner) :is(td,th){border-block:2px solid highlight}.separator:before{background:canvastext}.tabs button[aria-selected=true],.pane-tabs button[aria-pressed=true]{border-bottom-color:highlight}.switch input:checked+span{color:highlighttext;forced-color-adjust:none;background:highlight}.track{border:1px solid canvastext}.bar,.bars .track,.swatch,.token,.crosshair,canvas{forced-color-adjust:none}}") });
	return () => {
		r.unmount(), n.close();
	};
} };
export { sc as Messages, dc as default };
