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
var f, p, m, h, g, _, v, y, b, x, S, ee, C = Symbol.for("pv"), w = {}, T = [], E = /^m(i|n|o|s|text|space)$/, te = Array.isArray, ne = T.slice, re = Object.assign;
function ie(e) {
	e && e.parentNode && e.remove();
}
function D(e, t, n) {
	var r, i, a, o = {}, s = arguments.length;
	for (a in t) a == "key" ? r = t[a] : a == "ref" && typeof e != "function" ? i = t[a] : o[a] = t[a];
	return s > 2 && (o.children = s > 3 ? ne.call(arguments, 2) : n), O(e, o, r, i, null);
}
function O(e, t, n, r, i) {
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
		constructor: C,
		__v: i || ++p,
		__i: -1,
		__u: 0
	};
	return !i && f.vnode && f.vnode(a), a;
}
function k(e) {
	return e.children;
}
function ae(e, t) {
	this.props = e, this.context = t, this.__g = 0;
}
function oe(e, t) {
	if (t == null) return e.__ && oe(e.__, e.__i + 1);
	for (var n; t < e.__k.length; t++) if ((n = e.__k[t]) && n.__e) return n.__e;
	return typeof e.type != "function" || e.props.__P ? null : oe(e);
}
function A(e) {
	var t, n = e.__v, r = n.__e, i = [], a = [], o = e.__P;
	o && ((t = re({ constructor: C }, n)).__v = n.__v + 1, f.vnode && f.vnode(t), _e(o, t, n, e.__n, o.namespaceURI, 32 & n.__u ? [r] : null, i, r || oe(n), 32 & n.__u, a), t.__v = n.__v, t.__.__k[t.__i] = t, be(i, t, a), n.__ = n.__e = null, t.__e != r && se(t));
}
function se(e) {
	if ((e = e.__) && e.__c && !e.props.__P) return e.__e = null, e.__k.some(function(t) {
		return t && (e.__e = t.__e);
	}), se(e);
}
function ce(e) {
	(8 & e.__g || (e.__g |= 8, h.push(e), _++)) && g == f.debounceRendering || ((g = f.debounceRendering) || queueMicrotask)(le);
}
function le() {
	try {
		for (var e, t = 1; h.length;) h.length > t && h.sort(v), e = h.shift(), t = h.length, 8 & e.__g && A(e);
	} finally {
		(_ = h.length) && (g || queueMicrotask)(le);
	}
}
function ue(e, t, n, r, i, a, o, s, c, l, u) {
	var d, f, p, m, h, g, _ = r.__k || T, v = t.length;
	for (c = de(n, t, _, c, v), d = 0; d < v; d++) (p = n.__k[d]) != null && (f = ~p.__i && _[p.__i] || w, p.__i = d, g = _e(e, p, f, i, a, o, s, c, l, u), m = p.__e, (f.ref != p.ref || 8 & f.__u) && (f.ref && Se(f.ref, null, p, f), p.ref && u.push(p.ref, p.__c || m, p)), h ||= m, 4 & p.__u ? (c = fe(p, c, e, !f.__v), f.__e && (f.__e = null)) : typeof p.type == "function" && g !== void 0 ? c = g : m && (c = m.nextSibling), p.__u &= -21);
	return n.__e = h, c;
}
function de(e, t, n, r, i) {
	var a, o, s, c, l, u, d, f, p, m = n.length, h = m, g = 0, _ = 0, v = e.__k = Array(i);
	for (a = 0; a < i; a++) (o = t[a]) != null && typeof o != "boolean" && typeof o != "function" ? (typeof o != "object" || o.constructor === String ? o = v[a] = O(null, o) : te(o) ? o = v[a] = O(k, { children: o }) : o.constructor === C && o.__b ? o = v[a] = O(o.type, o.props, o.key, o.ref, o.__v) : v[a] = o, c = a + g, o.__ = e, o.__b = e.__b + 1, s = null, ~(l = o.__i = pe(o, n, c, h)) && (h--, (s = n[l]) && (s.__u |= 2)), s && s.__v ? (o.__u |= 16, l == c - 1 ? g-- : l == c + 1 ? g++ : l != c && (l > c ? g-- : g++, _ = 1)) : (~l || (i > m ? g-- : i < m && g++), typeof o.type != "function" && (o.__u |= 4))) : v[a] = null;
	if (_) {
		for (u = [], d = [], a = 0; a < i; a++) if ((o = v[a]) && 16 & o.__u) {
			for (g = 0, f = u.length; g < f;) u[p = g + f >> 1] < o.__i ? g = p + 1 : f = p;
			u[g] = o.__i, d[a] = g + 1;
		}
		for (g = u.length; a--;) d[a] && (d[a] == g ? g-- : v[a].__u |= 4);
	}
	if (h) for (a = 0; a < m; a++) !(s = n[a]) || 2 & s.__u || (s.__e == r && (r = oe(s)), Ce(s, s));
	return r;
}
function fe(e, t, n, r) {
	var i, a, o, s;
	if (typeof e.type == "function") {
		if (e.props.__P) return t;
		if (i = e.__k) for (a = 0; a < i.length; a++) i[a] && (i[a].__ = e, t = fe(i[a], t, n, !1));
		return t;
	}
	for (t && !t.parentNode && (t = oe(e)) && !t.parentNode && (t = null), o = e.__e, s = t; s && s.nodeType == 8;) s = s.nextSibling;
	for (o != s && (!r && n.moveBefore && o.parentNode ? n.moveBefore(o, t) : n.insertBefore(o, t || null)), t = o; (t &&= t.nextSibling) && t.nodeType == 8 && !t.data.startsWith("$s"););
	return t;
}
function pe(e, t, n, r) {
	var i, a = e.key, o = e.type, s = t[n], c = s && !(2 & s.__u);
	if (s === null && a == null || c && a == s.key && o == s.type) return n;
	if (r > +!!c) {
		for (i = n - 1; i >= 0; i--) if ((s = t[i]) && !(2 & s.__u) && a == s.key && o == s.type) return i;
		for (i = n + 1; i < t.length; i++) if ((s = t[i]) && !(2 & s.__u) && a == s.key && o == s.type) return i;
	}
	return -1;
}
function me(e, t, n) {
	n ??= "", t[0] == "-" ? e.setProperty(t, n) : e[t] = n;
}
function he(e, t, n, r, i) {
	var a, o;
	if (t == "style") {
		if (typeof n == "string") e.style.cssText = n;
		else {
			if (typeof r == "string" && (e.style.cssText = r = ""), r) for (t in r) n && t in n || me(e.style, t);
			if (n) for (t in n) r && n[t] == r[t] || me(e.style, t, n[t]);
		}
	} else if (t[0] == "o" && t[1] == "n") typeof n != "function" && (n = null), typeof r != "function" && (r = null), (e.__e ||= {})[t] = n, n && r || (o = S[t] || (S[t] = ge(t)), (e.__a ||= {})[t] = x, a = t != (t = t.replace(b, "$1")), (t = t.slice(2))[0] < "a" && (t = t.toLowerCase()), n ? e.addEventListener(t, o, a) : e.removeEventListener(t, o, a));
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
function ge(e) {
	return function(t) {
		var n = this.__e;
		if (n) {
			if (n = n[e], t[y] == null) t[y] = x++;
			else if (t[y] < this.__a[e]) return;
			return n(f.event ? f.event(t) : t);
		}
	};
}
function _e(e, t, n, r, i, a, o, s, c, l) {
	var u, d, p, m, h, g, _, v, y, b, x, S, ee, w, E, ne, D, O, A = t.type;
	if (t.constructor !== C) return null;
	128 & n.__u && (c = 32 & n.__u, u = n.__c.__z) && (t.__u |= c, d = a = [], u.nodeType == 8 ? s = ve(u, a) : a.push(u), s = a[0] || s), (u = f.__b) && u(t);
	n: if (typeof A == "function") {
		p = o.length;
		try {
			if (v = t.props, y = (u = A.prototype) && u.render, b = (u = A.contextType) && r[u.__c], x = u ? b ? b.props.value : u.__ : r, (m = n.__c) ? (t.__c = m, 2 & m.__g && (m.__g |= 1)) : (y ? t.__c = m = new A(v, x) : (t.__c = m = new ae(v, x), m.constructor = A, m.render = we), b && b.sub(m), m.state || (m.state = {}), m.__n = r, m.__g |= 8, m.__h = [], m.__k = []), y && (m.__s || (m.__s = m.state), A.getDerivedStateFromProps && (m.__s == m.state && (m.__s = re({}, m.__s)), re(m.__s, A.getDerivedStateFromProps(v, m.__s)))), h = m.props, g = m.state, m.__v = t, n.__c) {
				if (v !== h && y && !A.getDerivedStateFromProps && m.componentWillReceiveProps && m.componentWillReceiveProps(v, x), t.__v == n.__v && !(8 & m.__g) || !(4 & m.__g) && m.shouldComponentUpdate && !1 === m.shouldComponentUpdate(v, m.__s, x)) {
					t.__v != n.__v && (m.props = v, m.state = m.__s, m.__g &= -9), t.__e = n.__e, t.__k = n.__k, t.__k.some(function(e) {
						e && (e.__ = t);
					}), T.push.apply(m.__h, m.__k), m.__k = [], m.__h.length && o.push(m), s = oe(n);
					break n;
				}
				m.componentWillUpdate && m.componentWillUpdate(v, m.__s, x), y && m.componentDidUpdate && m.__h.push(function() {
					m.componentDidUpdate(h, g, _);
				});
			} else y && !A.getDerivedStateFromProps && m.componentWillMount && m.componentWillMount(), y && m.componentDidMount && m.__h.push(m.componentDidMount);
			m.context = x, m.props = v, m.__P = e, m.__g &= -5, S = f.__r, ee = y ? 25 : 0;
			do
				m.__g &= -9, S && S(t), u = m.render(m.props, m.state = m.__s, m.context);
			while (8 & m.__g && ++ee < 25);
			y && (T.push.apply(m.__h, m.__k), m.__k = []), m.state = m.__s, m.getChildContext && (r = re({}, r, m.getChildContext())), y && n.__c && m.getSnapshotBeforeUpdate && (_ = m.getSnapshotBeforeUpdate(h, g)), w = u && u.type === k && u.key == null ? u.props.children : u, v.__P && (u = s, i = (e = v.__P).namespaceURI, c = a = null, n.props && n.props.__P != e && (n.__k.some(function(e) {
				e && Ce(e, e);
			}), n.__k = null), s = n.__k ? oe(n, 0) : null), s = ue(e, te(w) ? w : [w], t, n, r, i, a, o, s, c, l), v.__P && (t.__e = null, s = u), t.__u &= -161, d && d.some(ie), m.__h.length && o.push(m), 1 & m.__g && (m.__g &= -4);
		} catch (e) {
			if (o.length = p, t.__v = null, c || a) {
				if (e && e.then) {
					if (t.__u |= 128 | c, a) {
						for (~(D = a.indexOf(s || void 0)) || (D = a.length); (O = a[D - 1]) && O.nodeType == 8;) D--;
						for (; D < a.length; D++) if (O = a[D]) {
							if (a[D] = null, E) {
								if (O == ne) break;
							} else {
								if (O.nodeType != 8) break;
								O.data.startsWith("$s") && (ne = ve(E = O));
							}
						}
					}
					if (!E) {
						for (; s && s.nodeType == 8 && s.nextSibling;) s = s.nextSibling;
						E = s;
					}
					(u = ve(E = t.__c.__z || (t.__c.__z = E))) ? (t.__e = E, s = u) : t.__e = s, s &&= s.nextSibling;
				} else a && a.some(ie);
			} else t.__e = n.__e;
			t.__k ||= n.__k || [], e && e.then || ye(t), f.__e(e, t, n);
		}
	} else s = t.__e = xe(n.__e, t, n, r, i, a, o, c, l, e);
	return (u = f.diffed) && u(t), s;
}
function ve(e, t) {
	if (e && e.nodeType == 8 && e.data.startsWith("$s")) for (var n = 1; e = e.nextSibling;) {
		if (e.nodeType == 8) {
			if (e.data.startsWith("$s")) n++;
			else if (e.data.startsWith("/$s") && !--n) return e;
		}
		t && t.push(e);
	}
}
function ye(e) {
	e && (e.__c && (e.__c.__g |= 4), e.__k && e.__k.some(ye));
}
function be(e, t, n) {
	for (var r = 0; r < n.length;) Se(n[r++], n[r++], n[r++]);
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
function xe(e, t, n, r, i, a, o, s, c, l) {
	var u, d, p, m, h, g, _, v, y = n.props || w, b = t.props, x = t.type;
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
		if (l = x == "template" && e.content || e, a = x == "textarea" && b.defaultValue != null ? null : a && ne.call(l.childNodes), !s && a) for (y = {}, u = 0; u < e.attributes.length; u++) y[(h = e.attributes[u]).name] = h.value;
		for (u in y) h = y[u], u == "dangerouslySetInnerHTML" ? p = h : u == "children" || u in b || u == "value" && "defaultValue" in b || u == "checked" && "defaultChecked" in b || he(e, u, null, h, i);
		for (u in b) h = b[u], u == "children" ? m = h : u == "dangerouslySetInnerHTML" ? d = h : u == "value" ? g = h : u == "checked" ? _ = h : s && typeof h != "function" || y[u] === h || he(e, u, h, y[u], i);
		d ? (s || p && (d.__html == p.__html || d.__html == e.innerHTML) || (e.innerHTML = d.__html), t.__k = []) : (p && (e.textContent = ""), (x == "foreignObject" || i == "http://www.w3.org/1998/Math/MathML" && E.test(x)) && (i = "http://www.w3.org/1999/xhtml"), ue(l, te(m) ? m : [m], t, n, r, i, a, o, a ? a[0] : n.__k && oe(n, 0), s, c), a && a.some(ie)), s && x != "textarea" || (u = "value", x == "progress" && g == null ? e.removeAttribute(u) : g == null || g === e[u] && (x != "progress" || g) || he(e, u, g, y[u], i), u = "checked", _ != null && _ != e[u] && he(e, u, _, y[u], i));
	} else y === b || s && e.data == b || (e.data = b);
	return e;
}
function Se(e, t, n, r) {
	try {
		typeof e == "function" ? t ? t.__x = e(t) || 1 : (r &&= r.__c || r.__e) && (t = r.__x) && (r.__x = null, typeof t == "function" ? t() : e(null)) : e.current = t;
	} catch (e) {
		f.__e(e, n);
	}
}
function Ce(e, t, n) {
	var r, i, a, o;
	if (f.unmount && f.unmount(e), !(r = e.ref) || r.current && r.current != e.__e || Se(r, null, t, e), r = e.__c) {
		if (r.componentWillUnmount) try {
			r.componentWillUnmount();
		} catch (e) {
			f.__e(e, t);
		}
		r.__P = r.__n = null;
	}
	if (r = e.__k) for (o = 0; o < r.length; o++) r[o] && Ce(r[o], t, typeof e.type != "function" || n && !e.props.__P);
	!n && (r = e.__c) && (r = r.__z) && (i = ve(r, a = [])) && (r == e.__e && a.some(ie), ie(i), ie(r)), n || ie(e.__e), e.__e = e.__c = e.__ = null;
}
function we(e, t, n) {
	return this.constructor(e, n);
}
function Te(e, t) {
	var n, r, i, a;
	f.__ && f.__(e, t), t.nodeType == 9 && (t = t.documentElement), r = (n = e && 32 & e.__u) ? null : t.__k, t.__k = O(k, { children: [e] }), i = [], a = [], _e(t, t.__k, r || w, w, t.namespaceURI, r ? null : t.firstChild ? ne.call(t.childNodes) : null, i, r ? r.__e : t.firstChild, n, a), be(i, t.__k, a), t.__k.props.children = null;
}
function Ee(e) {
	function t(e) {
		var n, r;
		return this.getChildContext || (n = /* @__PURE__ */ new Set(), (r = {})[t.__c] = this, this.getChildContext = function() {
			return r;
		}, this.shouldComponentUpdate = function(e) {
			this.props.value != e.value && n.forEach(function(e) {
				e.__g |= 4, ce(e);
			});
		}, this.sub = function(e) {
			n.add(e);
			var t = e.componentWillUnmount;
			e.componentWillUnmount = function() {
				n.delete(e), t && t.call(e);
			};
		}), e.children;
	}
	return t.__c = "__cC" + ee++, t.__ = e, t.Provider = (t.Consumer = function(e, t) {
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
	throw _ = 0, e;
} }, p = 0, m = function(e) {
	return e != null && e.constructor === C;
}, ae.prototype.setState = function(e, t) {
	var n = this.__s;
	n && n != this.state || (n = this.__s = re({}, this.state)), typeof e == "function" && (e = e(re({}, n), this.props)), e && (re(n, e), this.__v && (t && this.__k.push(t), ce(this)));
}, ae.prototype.forceUpdate = function(e) {
	this.__v && (this.__g |= 4, e && this.__h.push(e), ce(this));
}, ae.prototype.render = k, h = [], _ = 0, v = function(e, t) {
	return e.__v.__b - t.__v.__b;
}, y = Symbol(), b = /(PointerCapture)$|Capture$/i, x = 0, S = {}, ee = 0;
// node_modules/preact/hooks/dist/hooks.mjs
var De, j, Oe, ke, Ae = Object.is, je = 0, Me = [], Ne = [], M = f, Pe = M.__b, Fe = M.__r, Ie = M.diffed, Le = M.__c, Re = M.unmount, ze = M.__;
function Be(e, t) {
	M.__h && M.__h(j, e, je || t), je = 0;
	var n = j.__H || (j.__H = {
		__: [],
		__h: []
	});
	return e >= n.__.length && n.__.push({}), n.__[e];
}
function N(e, t) {
	var n = Be(De++, 3);
	!M.__s && Ye(n.__H, t) && (n.__P = !0, n.__ = e, n.u = t, j.__H.__h.push(n));
}
function P(e) {
	return je = 5, Ve(function() {
		return { current: e };
	}, []);
}
function Ve(e, t) {
	var n = Be(De++, 7);
	return Ye(n.__H, t) && (n.__ = e(), n.__H = t), n.__;
}
function He(e) {
	var t = j.context[e.__c], n = Be(De++, 9);
	return n.c = e, t ? (n.__ ?? (n.__ = !0, t.sub(j)), t.props.value) : e.__;
}
function Ue() {
	var e;
	do {
		for (; e = Ne.shift();) try {
			qe(e);
		} catch (t) {
			M.__e(t, { __: (e = e.__P) && e.__v });
		}
		for (; e = Me.shift();) {
			var t = e.__H;
			if (e.__P && t) try {
				t.__h.some(qe), t.__h.some(Je), t.__h = [];
			} catch (n) {
				t.__h = [], M.__e(n, e.__v);
			}
		}
	} while (Ne.length);
}
M.__b = function(e) {
	j = null, Pe && Pe(e);
}, M.__ = function(e, t) {
	e && t.__k && t.__k.__m && (e.__m = t.__k.__m), ze && ze(e, t);
}, M.__r = function(e) {
	Fe && Fe(e), De = 0;
	var t = (j = e.__c).__H;
	t && (Oe == j ? j.__h = [] : (t.__h.some(qe), t.__h.some(Je), De = 0), t.__h = [], t.__.some(function(e) {
		e.__N && (e.__ = e.__N), e.u = e.__N = void 0;
	})), Oe = j;
}, M.diffed = function(e) {
	Ie && Ie(e);
	var t = e.__c;
	t && t.__H && (t.__H.__h.length && Ke(Me.push(t)), t.__H.__.some(function(e) {
		e.u && (e.__H = e.u);
	})), Oe = j = null;
}, M.__c = function(e, t) {
	t.some(function(e) {
		try {
			e.__h.some(qe), e.__h = e.__h.filter(function(e) {
				return !e.__ || Je(e);
			});
		} catch (t) {
			e.__h = [function() {
				throw t;
			}];
		}
	}), Le && Le(e, t);
}, M.unmount = function(e) {
	Re && Re(e);
	var t, n, r = e.__c;
	r && r.__H && (r.__H.__.some(function(r) {
		try {
			if (r.__P && r.__c) {
				if (n === void 0) {
					for (n = e.__; n && (!n.__c || !n.__c.__P);) n = n.__;
					n &&= n.__c;
				}
				r.__P = n, Ke(Ne.push(r));
			} else qe(r);
		} catch (e) {
			t = e;
		}
	}), r.__H = void 0, t && M.__e(t, r.__v));
};
var We = typeof requestAnimationFrame == "function";
function Ge(e) {
	var t, n = function() {
		clearTimeout(r), We && cancelAnimationFrame(t), setTimeout(e);
	}, r = setTimeout(n, 35);
	We && (t = requestAnimationFrame(n));
}
function Ke(e) {
	e != 1 && ke == M.requestAnimationFrame || ((ke = M.requestAnimationFrame) || Ge)(Ue);
}
function qe(e) {
	var t = j, n = e.__c;
	typeof n == "function" && (e.__c = void 0, n()), j = t;
}
function Je(e) {
	var t = j;
	e.__c = e.__(), j = t;
}
function Ye(e, t) {
	return !e || e.length != t.length || t.some(function(t, n) {
		return !Ae(t, e[n]);
	});
}
// node_modules/@preact/signals-core/dist/signals-core.module.js
var Xe = Symbol.for("preact-signals");
function Ze() {
	if (I > 1) I--;
	else {
		var e, t = !1;
		for ((function() {
			var e = at;
			for (at = void 0; e !== void 0;) {
				var t = e.S;
				if (t.v === e.v) for (var n = t.t; n !== void 0; n = n.x) n.i === e.i && (n.i = t.i);
				e = e.o;
			}
		})(); tt !== void 0;) {
			var n = tt;
			for (tt = void 0, nt++; n !== void 0;) {
				var r = n.u;
				if (n.u = void 0, n.f &= -3, !(8 & n.f) && ct(n)) try {
					n.c();
				} catch (n) {
					t ||= (e = n, !0);
				}
				n = r;
			}
		}
		if (nt = 0, I--, t) throw e;
	}
}
function Qe(e) {
	if (I > 0) return e();
	it = ++rt, I++;
	try {
		return e();
	} finally {
		Ze();
	}
}
var $e, F = void 0;
function et(e) {
	var t = F, n = $e;
	F = void 0, $e = void 0;
	try {
		return e();
	} finally {
		F = t, $e = n;
	}
}
var tt = void 0, I = 0, nt = 0, rt = 0, it = 0, at = void 0, ot = 0;
function st(e) {
	if (F !== void 0) {
		var t = e.n;
		if (t === void 0 || t.t !== F) return t = {
			i: 0,
			S: e,
			p: F.s,
			n: void 0,
			t: F,
			e: void 0,
			x: void 0,
			r: t
		}, F.s !== void 0 && (F.s.n = t), F.s = t, e.n = t, 32 & F.f && e.S(t), t;
		if (t.i === -1) return t.i = 0, t.n !== void 0 && (t.n.p = t.p, t.p !== void 0 && (t.p.n = t.n), t.p = F.s, t.n = void 0, F.s.n = t, F.s = t), t;
	}
}
function L(e, t) {
	this.v = e, this.i = 0, this.n = void 0, this.t = void 0, this.l = 0, this.W = t?.watched, this.Z = t?.unwatched, this.name = t?.name;
}
L.prototype.brand = Xe, L.prototype.h = function() {
	return !0;
}, L.prototype.S = function(e) {
	var t = this, n = this.t;
	n !== e && e.e === void 0 && (e.x = n, this.t = e, n === void 0 ? et(function() {
		var e;
		(e = t.W) == null || e.call(t);
	}) : n.e = e);
}, L.prototype.U = function(e) {
	var t = this;
	if (this.t !== void 0) {
		var n = e.e, r = e.x;
		n !== void 0 && (n.x = r, e.e = void 0), r !== void 0 && (r.e = n, e.x = void 0), e === this.t && (this.t = r, r === void 0 && et(function() {
			var e;
			(e = t.Z) == null || e.call(t);
		}));
	}
}, L.prototype.subscribe = function(e) {
	var t = this;
	return z(function() {
		var n = t.value;
		et(function() {
			return e(n);
		});
	}, { name: "sub" });
}, L.prototype.valueOf = function() {
	return this.value;
}, L.prototype.toString = function() {
	return this.value + "";
}, L.prototype.toJSON = function() {
	return this.value;
}, L.prototype.peek = function() {
	var e = this;
	return et(function() {
		return e.value;
	});
}, Object.defineProperty(L.prototype, "value", {
	get: function() {
		var e = st(this);
		return e !== void 0 && (e.i = this.i), this.v;
	},
	set: function(e) {
		if (e !== this.v) {
			if (nt > 100) throw Error("Cycle detected");
			(function(e) {
				I !== 0 && nt === 0 && e.l !== it && (e.l = it, at = {
					S: e,
					v: e.v,
					i: e.i,
					o: at
				});
			})(this), this.v = e, this.i++, ot++, I++;
			try {
				for (var t = this.t; t !== void 0; t = t.x) t.t.N();
			} finally {
				Ze();
			}
		}
	}
});
function R(e, t) {
	return new L(e, t);
}
function ct(e) {
	for (var t = e.s; t !== void 0; t = t.n) if (t.S.i !== t.i || !t.S.h() || t.S.i !== t.i) return !0;
	return !1;
}
function lt(e) {
	for (var t = e.s; t !== void 0; t = t.n) {
		var n = t.S.n;
		if (n !== void 0 && (t.r = n), t.S.n = t, t.i = -1, t.n === void 0) {
			e.s = t;
			break;
		}
	}
}
function ut(e) {
	for (var t = e.s, n = void 0; t !== void 0;) {
		var r = t.p;
		t.i === -1 ? (t.S.U(t), r !== void 0 && (r.n = t.n), t.n !== void 0 && (t.n.p = r)) : n = t, t.S.n = t.r, t.r !== void 0 && (t.r = void 0), t = r;
	}
	e.s = n;
}
function dt(e, t) {
	L.call(this, void 0, t), this.x = e, this.s = void 0, this.g = ot - 1, this.f = 4;
}
dt.prototype = new L(), dt.prototype.h = function() {
	if (this.f &= -3, 1 & this.f) return !1;
	if ((36 & this.f) == 32 || (this.f &= -5, this.g === ot)) return !0;
	if (this.g = ot, this.f |= 1, this.i > 0 && !ct(this)) return this.f &= -2, !0;
	var e = F;
	try {
		lt(this), F = this;
		var t = this.x();
		(16 & this.f || this.v !== t || this.i === 0) && (this.v = t, this.f &= -17, this.i++);
	} catch (e) {
		this.v = e, this.f |= 16, this.i++;
	}
	return F = e, ut(this), this.f &= -2, !0;
}, dt.prototype.S = function(e) {
	if (this.t === void 0) {
		this.f |= 36;
		for (var t = this.s; t !== void 0; t = t.n) t.S.S(t);
	}
	L.prototype.S.call(this, e);
}, dt.prototype.U = function(e) {
	if (this.t !== void 0 && (L.prototype.U.call(this, e), this.t === void 0)) {
		this.f &= -33;
		for (var t = this.s; t !== void 0; t = t.n) t.S.U(t);
	}
}, dt.prototype.N = function() {
	if (!(2 & this.f)) {
		this.f |= 6;
		for (var e = this.t; e !== void 0; e = e.x) e.t.N();
	}
}, Object.defineProperty(dt.prototype, "value", { get: function() {
	if (1 & this.f) throw Error("Cycle detected");
	var e = st(this);
	if (this.h(), e !== void 0 && (e.i = this.i), 16 & this.f) throw this.v;
	return this.v;
} });
function ft(e, t) {
	return new dt(e, t);
}
function pt(e) {
	var t = e.j;
	if (e.j = void 0, typeof t == "function") {
		I++;
		var n = F;
		F = void 0;
		try {
			t();
		} catch (t) {
			throw e.f &= -2, e.f |= 8, mt(e), t;
		} finally {
			F = n, Ze();
		}
	}
}
function mt(e) {
	for (var t = e.s; t !== void 0; t = t.n) t.S.U(t);
	e.x = void 0, e.s = void 0, pt(e);
}
function ht(e) {
	if (F !== this) throw Error("Out-of-order effect");
	ut(this), F = e, this.f &= -2;
	try {
		8 & this.f && mt(this);
	} finally {
		Ze();
	}
}
function gt(e, t) {
	this.x = e, this.j = void 0, this.s = void 0, this.u = void 0, this.f = 32, this.name = t?.name, $e && $e.push(this);
}
gt.prototype.c = function() {
	var e = this.S();
	try {
		if (8 & this.f || this.x === void 0) return;
		var t = this.x();
		typeof t == "function" && (this.j = t);
	} finally {
		e();
	}
}, gt.prototype.S = function() {
	if (1 & this.f) throw Error("Cycle detected");
	this.f |= 1, this.f &= -9, pt(this), lt(this), I++;
	var e = F;
	return F = this, ht.bind(this, e);
}, gt.prototype.N = function() {
	2 & this.f || (this.f |= 2, this.u = tt, tt = this);
}, gt.prototype.d = function() {
	this.f |= 8, 1 & this.f || mt(this);
}, gt.prototype.dispose = function() {
	this.d();
};
function z(e, t) {
	var n = new gt(e, t);
	try {
		n.c();
	} catch (e) {
		throw n.d(), e;
	}
	var r = n.d.bind(n);
	return r[Symbol.dispose] = r, r;
}
// node_modules/@preact/signals/dist/signals.module.js
var _t, vt, yt, bt = typeof window < "u" && !!window.__PREACT_SIGNALS_DEVTOOLS__, xt = [], St = [];
z(function() {
	_t = this.N;
})();
function Ct(e, t) {
	f[e] = t.bind(null, f[e] || function() {});
}
function wt(e) {
	if (yt) {
		var t = yt;
		yt = void 0, t();
	}
	yt = e && e.S();
}
function Tt(e) {
	var t = this, n = e.data, r = B(n);
	r.name = "ReactiveDom", r.value = n;
	var i = Ve(function() {
		for (var e = t, n = t.__v; n = n.__;) if (n.__c) {
			n.__c.__$f |= 4;
			break;
		}
		var i = ft(function() {
			var e = r.value.value;
			return e === 0 ? 0 : !0 === e ? "" : e || "";
		}), a = ft(function() {
			return !Array.isArray(i.value) && !m(i.value);
		}), o = z(function() {
			if (this.N = Mt, a.value) {
				var t = i.value;
				e.__v && e.__v.__e && e.__v.__e.nodeType === 3 && (e.__v.__e.data = t);
			}
		}), s = t.__$u.d;
		return t.__$u.d = function() {
			o(), s.call(this);
		}, [a, i];
	}, []), a = i[0], o = i[1];
	return a.value ? o.peek() : o.value;
}
Tt.displayName = "ReactiveTextNode", Object.defineProperties(L.prototype, {
	constructor: {
		configurable: !0,
		value: D(k, null).constructor
	},
	type: {
		configurable: !0,
		value: Tt
	},
	props: {
		configurable: !0,
		get: function() {
			var e = this;
			return { data: { get value() {
				return e.value;
			} } };
		}
	},
	__b: {
		configurable: !0,
		value: 1
	}
}), Ct("__b", function(e, t) {
	if (wt(), vt = void 0, typeof t.type == "string") {
		var n, r = t.props;
		for (var i in r) if (i !== "children") {
			var a = r[i];
			a instanceof L && (n || (t.__np = n = {}), n[i] = a, r[i] = a.peek());
		}
	}
	e(t);
}), Ct("__r", function(e, t) {
	if (e(t), t.type !== k) {
		wt();
		var n, r = t.__c;
		r && (r.__$f &= -2, (n = r.__$u) === void 0 && (r.__$u = n = function(e, t) {
			var n;
			return z(function() {
				n = this;
			}, { name: t }), n.c = e, n;
		}(function(e) {
			return function() {
				var t;
				bt && ((t = this.y) == null || t.call(this)), e.__$f |= 1, e.setState({});
			};
		}(r), typeof t.type == "function" ? t.type.displayName || t.type.name : ""))), vt = r, wt(n);
	}
}), Ct("__e", function(e, t, n, r) {
	wt(), vt = void 0, e(t, n, r);
}), Ct("diffed", function(e, t) {
	wt(), vt = void 0;
	var n;
	if (typeof t.type == "string" && (n = t.__e)) {
		var r = t.__np, i = t.props, a = n.U;
		if (a) for (var o in a) {
			var s = a[o];
			s === void 0 || r && o in r || (s.d(), a[o] = void 0);
		}
		if (r) for (var c in a || (a = {}, n.U = a), r) {
			var l = a[c], u = r[c];
			l === void 0 ? (l = Et(n, c, u, i), a[c] = l) : l.o(u, i);
		}
	}
	e(t);
});
function Et(e, t, n, r) {
	var i = t in e && e.ownerSVGElement === void 0, a = R(n);
	return {
		o: function(e, t) {
			a.value = e, r = t;
		},
		d: z(function() {
			this.N = Mt;
			var n = a.value.value;
			r[t] !== n && (r[t] = n, i ? e[t] = n : n != null && (!1 !== n || t[4] === "-") ? e.setAttribute(t, n) : e.removeAttribute(t));
		})
	};
}
Ct("unmount", function(e, t) {
	if (typeof t.type == "string") {
		var n = t.__e;
		if (n) {
			var r = n.U;
			if (r) for (var i in n.U = void 0, r) {
				var a = r[i];
				a && a.d();
			}
		}
		var o = t.__np;
		if (o) {
			var s = t.props;
			for (var c in o) s[c] = o[c];
		}
		t.__np = void 0;
	} else {
		var l = t.__c;
		if (l) {
			l.__$f |= 8;
			var u = l.__$u;
			u && (l.__$u = void 0, u.d());
		}
	}
	e(t);
}), Ct("__h", function(e, t, n, r) {
	r < 3 && (t.__$f |= 2), e(t, n, r);
}), ae.prototype.shouldComponentUpdate = function(e, t) {
	if (this.__R) return !0;
	var n = this.__$u, r = n && n.s !== void 0;
	for (var i in t) return !0;
	if (this.__f || typeof this.u == "boolean" && !0 === this.u) {
		var a = 2 & this.__$f;
		if (!(r || a || 4 & this.__$f) || 1 & this.__$f) return !0;
	} else if (!(r || 4 & this.__$f) || 3 & this.__$f) return !0;
	for (var o in e) if (o !== "__source" && e[o] !== this.props[o]) return !0;
	for (var s in this.props) if (!(s in e)) return !0;
	return !1;
};
function B(e, t) {
	return Ve(function() {
		return R(e, t);
	}, []);
}
var Dt = typeof requestAnimationFrame > "u" ? setTimeout : function(e) {
	var t = function() {
		clearTimeout(n), cancelAnimationFrame(r), e();
	}, n = setTimeout(t, 35), r = requestAnimationFrame(t);
}, Ot = function(e) {
	queueMicrotask(function() {
		queueMicrotask(e);
	});
};
function kt() {
	Qe(function() {
		for (var e; e = xt.shift();) _t.call(e);
	});
}
function At() {
	xt.push(this) === 1 && (f.requestAnimationFrame || Dt)(kt);
}
function jt() {
	Qe(function() {
		for (var e; e = St.shift();) _t.call(e);
	});
}
function Mt() {
	St.push(this) === 1 && (f.requestAnimationFrame || Ot)(jt);
}
function V(e, t) {
	var n = P(e);
	n.current = e;
	var r = vt;
	N(function() {
		return z(function() {
			if (this.N = At, !(r && 8 & r.__$f)) return n.current();
		}, t);
	}, []);
}
// src/problem.ts
var H = class e extends Error {
	expected;
	got;
	hint;
	gone;
	constructor(e, t, n, r = !1) {
		super(`Expected ${e}; got ${t}. ${Nt(n)}.`), this.expected = e, this.got = t, this.hint = n, this.gone = r;
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
function Nt(e) {
	return e.charAt(0).toUpperCase() + e.slice(1);
}
// src/matrix.ts
function Pt(e, t) {
	let n = e.rows * e.keys, r = e.levels.subarray(t * n, (t + 1) * n), i = Ft(e, e.scales[t] ?? 0), a = new Float32Array(n);
	for (let e = 0; e < n; e++) a[e] = i[r[e] ?? 0] ?? 0;
	return {
		rows: e.rows,
		columns: e.keys,
		values: a
	};
}
function Ft({ most: e, power: t }, n) {
	let r = new Float32Array(e + 2);
	for (let i = 0; i <= e; i++) r[i] = n * (i / e) ** t;
	return r[e + 1] = NaN, r;
}
function It(e) {
	let t = e.rows * e.keys, n = new Float32Array(t).fill(NaN);
	for (let r = 0; r < e.heads; r++) {
		let i = Pt(e, r).values;
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
function Lt(e, t, n) {
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
function Rt(e, t, n) {
	let r = e.values[t * e.columns + n] ?? 0;
	return Number.isNaN(r) ? 0 : r;
}
function zt(e, t, n) {
	return Number.isNaN(e.values[t * e.columns + n] ?? 0);
}
function Bt(e, t) {
	let { columns: n, values: r } = e, i = Array(n);
	for (let e = 0; e < n; e++) {
		let a = r[t * n + e] ?? 0;
		i[e] = Number.isNaN(a) ? 0 : a;
	}
	return i;
}
function Vt(e, t) {
	return Array.from({ length: e.rows }, (n, r) => Rt(e, r, t));
}
function Ht(e) {
	return e.values.reduce((e, t) => t > e ? t : e, 0);
}
function Ut(e, t) {
	let n = [];
	return e.forEach((r, i) => {
		let a = n.findIndex((t) => r > (e[t] ?? 0));
		a >= 0 ? n.splice(a, 0, i) : n.push(i), n.length > t && n.pop();
	}), n;
}
function Wt(e) {
	return e.map((e, t) => t).sort((t, n) => (e[n] ?? 0) - (e[t] ?? 0) || t - n);
}
// src/share.ts
function U(e) {
	return e === 0 ? "0 %" : e < .01 ? "<1 %" : `${Math.round(e * 100)} %`;
}
function Gt(e) {
	return e < .01 ? "" : String(Math.round(e * 100));
}
function W(e) {
	return e === 0 ? "0 %" : e < .001 ? "<0.1 %" : `${(e * 100).toFixed(1)} %`;
}
// src/scale.ts
var Kt = [
	["root", "0–100 %, by the root"],
	["absolute", "0–100 %"],
	["map", "up to the largest of the map"],
	["row", "up to the largest of each row"],
	["uniform", "times the even share, 1/n"]
];
function qt(e, t, n) {
	if (e === "root") return (e) => Math.sqrt(Math.min(e, 1));
	if (e === "absolute") return (e) => Math.min(e, 1);
	if (e === "uniform") return (e) => Math.sqrt(Math.min(e * n, 16) / 16);
	if (e === "map") {
		let e = Ht(t);
		return (t) => e > 0 ? t / e : 0;
	}
	let r = Jt(t);
	return (e, t) => (r[t] ?? 0) > 0 ? e / (r[t] ?? 1) : 0;
}
function Jt({ rows: e, columns: t, values: n }) {
	let r = new Float32Array(e);
	for (let e = 0; e < n.length; e++) {
		let i = Math.floor(e / t), a = n[e] ?? 0;
		a > (r[i] ?? 0) && (r[i] = a);
	}
	return r;
}
function Yt(e, t) {
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
	].map((e) => n(Math.sqrt(e), U(e))) : e === "absolute" ? [
		0,
		.25,
		.5,
		.75,
		1
	].map((e) => n(e, U(e))) : e === "map" ? [n(0, "0 %"), n(1, `${U(t)}, the largest here`)] : e === "row" ? [n(0, "0 %"), n(1, "the largest of its row")] : [
		0,
		1,
		4,
		16
	].map((e) => n(Math.sqrt(e / 16), `${e} ×`));
}
// src/mechanism.ts
function Xt({ answer: e, sheet: t, layer: n, head: r, pinned: i, pointed: a }) {
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
function Zt(e) {
	return 2 ** ((e - 40) / 10);
}
function Qt(e) {
	return Math.min(Math.max(Math.round(40 + 10 * Math.log2(e)), 0), 80);
}
function $t(e, t, n) {
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
function en({ keys: e, shown: t, left: n }) {
	let r = new Set(t), i = e.index.flatMap((t, n) => r.has(t) ? [] : [e.hidden[n] === ""]), a = i.filter((e) => e).length;
	return {
		seen: n.seen + a,
		hidden: n.hidden + i.length - a
	};
}
function tn({ query: e, energy: t }, n) {
	return e.map((e, r) => {
		let i = n[r] ?? 0;
		return t === null ? (e ?? 0) * i : (t[r] ?? 0) * Math.tanh((e ?? 0) + i);
	});
}
function G(e) {
	if (e === null) return "–";
	let t = Math.abs(e);
	return (t >= 1e5 ? e.toExponential(1).replace("+", "") : e.toFixed(t >= 100 ? 1 : t >= .1 || t === 0 ? 2 : 3)).replace("-", "−");
}
function nn(e) {
	return String(Number(e.toPrecision(3)));
}
function rn(e, t) {
	return Math.abs(e * Math.sqrt(t) - 1) < 1e-4;
}
var an = {
	scaled: ["Scaled dot product", "q · k"],
	dot: ["Luong’s dot", "q · k"],
	general: ["Luong’s general", "q · W k"],
	additive: ["Additive", "v · tanh(W q + U k)"],
	concat: ["Luong’s concat", "v · tanh(W₁ q + W₂ k)"]
};
function on({ form: e }) {
	return an[e];
}
function sn(e) {
	let [, t] = on(e), n = e.scale === 1 ? t : `${nn(e.scale)} × ${t}`;
	return `score = ${e.softcap === null ? n : `${nn(e.softcap)} × tanh(${n} / ${nn(e.softcap)})`}${e.keys.bias === null ? "" : " + bias"}`;
}
var K = {
	text: null,
	row: null,
	layer: null,
	head: null,
	view: null,
	pinned: null,
	order: "sentence",
	scale: "root",
	statistic: null,
	sorted: !1,
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
	forced: []
};
function cn(e) {
	let t = [], n = (e, n) => {
		n !== null && t.push(`${e}=${encodeURIComponent(n)}`);
	};
	n("text", e.text), n("fp", e.forced.length > 0 ? e.forced.map((e) => e.toString(36)).join(".") : null);
	let r = t.length;
	n("row", e.row), n("l", e.layer), n("h", e.head), n("q", e.view && gn(e.view.rows)), n("k", e.view && gn(e.view.keys)), n("p", e.pinned && yn(e.pinned)), n("o", e.order === K.order ? null : e.order), n("s", e.scale === K.scale ? null : e.scale), n("m", e.statistic), n("sort", e.sorted ? 1 : null);
	let i = e.selected.map(({ layer: e, head: t }) => `${e}.${t}`);
	return n("sel", i.length > 0 ? i.join("_") : null), n("tab", e.tab === K.tab ? null : e.tab), n("d", e.side === "source" ? "s" : null), n("w", e.joined ? 1 : null), n("t", e.threshold === K.threshold ? null : e.threshold), n("x", e.apart ? 1 : null), n("out", e.output), n("wt", e.weight === K.weight ? null : e.weight), n("er", e.erased), n("f", e.factor === K.factor ? null : e.factor), n("u", e.unmasked ? 1 : null), t.length > r && t.splice(r, 0, "v=1"), t.length > 0 ? `#${t.join("&")}` : "";
}
function ln(e) {
	let t = /* @__PURE__ */ new Map();
	for (let n of e.replace(/^#/, "").split("&").filter((e) => e !== "")) {
		let [e = "", ...r] = n.split("=");
		if (!un.has(e) || t.has(e)) throw Sn(n);
		t.set(e, xn(r.join("="), n));
	}
	if (t.has("v") && t.get("v") !== "1") throw Sn(`v=${t.get("v")}`);
	let n = (e, n) => {
		let r = t.get(e);
		if (r === void 0) return null;
		let i = n(r);
		if (i === null) throw Sn(`${e}=${r}`);
		return i;
	}, [r, i] = [n("q", _n), n("k", _n)];
	if (r === null != (i === null)) throw Sn("one of q and k alone");
	return {
		text: t.get("text") || null,
		row: n("row", vn),
		layer: n("l", vn),
		head: n("h", (e) => e === "mean" ? e : vn(e)),
		view: r !== null && i !== null ? {
			rows: r,
			keys: i
		} : null,
		pinned: n("p", bn),
		order: n("o", (e) => e === "weight" ? e : null) ?? K.order,
		scale: n("s", (e) => Kt.find(([t]) => t === e)?.[0] ?? null) ?? K.scale,
		statistic: n("m", (e) => /^[a-z_]{1,40}$/.test(e) ? e : null),
		sorted: n("sort", dn) ?? !1,
		selected: n("sel", mn) ?? [],
		tab: n("tab", (e) => /^[a-z]{1,20}$/.test(e) ? e : null),
		side: n("d", (e) => e === "s" ? "source" : null) ?? "target",
		joined: n("w", dn) ?? !1,
		threshold: n("t", fn) ?? K.threshold,
		apart: n("x", dn) ?? !1,
		output: n("out", vn),
		weight: n("wt", fn) ?? K.weight,
		erased: n("er", vn),
		factor: n("f", (e) => pn(80, e)) ?? K.factor,
		unmasked: n("u", dn) ?? !1,
		forced: n("fp", hn) ?? K.forced
	};
}
var un = /* @__PURE__ */ new Set([
	"text",
	"v",
	"row",
	"l",
	"h",
	"q",
	"k",
	"p",
	"o",
	"s",
	"m",
	"sort",
	"sel",
	"tab",
	"d",
	"w",
	"t",
	"x",
	"out",
	"wt",
	"er",
	"f",
	"u",
	"fp"
]);
function dn(e) {
	return e === "1" || null;
}
function fn(e) {
	return pn(100, e);
}
function pn(e, t) {
	let n = vn(t);
	return n !== null && n <= e ? n : null;
}
function mn(e) {
	let t = e.split("_").map((e) => {
		let t = /^(\d{1,9})\.(\d{1,9})$/.exec(e);
		return t === null ? null : {
			layer: Number(t[1]),
			head: Number(t[2])
		};
	});
	return t.length < 6 && t.every((e) => e !== null) ? t : null;
}
function hn(e) {
	return /^[0-9a-z]{1,6}(\.[0-9a-z]{1,6})*$/.test(e) ? e.split(".").map((e) => parseInt(e, 36)) : null;
}
function gn({ from: e, to: t }) {
	return `${e}-${t - 1}`;
}
function _n(e) {
	let t = /^(\d{1,9})-(\d{1,9})$/.exec(e);
	if (t === null) return null;
	let [n, r] = [Number(t[1]), Number(t[2])];
	return n <= r ? {
		from: n,
		to: r + 1
	} : null;
}
function vn(e) {
	return /^\d{1,9}$/.test(e) ? Number(e) : null;
}
function yn({ side: e, index: t, partner: n }) {
	return `${e === "target" ? "t" : "s"}${t}${n === void 0 ? "" : `.${n}`}`;
}
function bn(e) {
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
function xn(e, t) {
	try {
		return decodeURIComponent(e);
	} catch {
		throw Sn(t);
	}
}
function Sn(e) {
	return new H("a whole link to this page", `a damaged one (${e.length > 60 ? `${e.slice(0, 59)}…` : e})`, "ask for the link again");
}
// src/label.ts
var Cn = "▁", wn = "Ġ", Tn = "##", En = /* @__PURE__ */ new Map([
	["<pad>", "⟨padding⟩"],
	["<unk>", "⟨unknown⟩"],
	["<s>", "⟨begin⟩"],
	["</s>", "⟨end⟩"]
]), Dn = 40, On = 32;
function kn(e) {
	return Vn(e);
}
function An(e, t, n = 0) {
	if (e.length !== t) return Array.from({ length: t }, (e, t) => kn(String(n + t)));
	let r = jn(e), i = e.some((e) => e.startsWith(Tn) && e !== Tn), a = Ln(e.map((e) => In(e, r === wn)));
	return e.map((e, t) => {
		let n = En.get(e);
		if (n !== void 0) return {
			text: n,
			begins: !0,
			special: !0
		};
		let o = a[t], s = r !== void 0 && e.startsWith(r) ? e.slice(r.length) : e;
		if (o != null) {
			let n = t === 0 || r !== void 0 && e.startsWith(r) || r === void 0;
			return {
				...Un(r === wn ? o.text.replace(/^ (?=.)/su, "") : o.text, n),
				...o.note
			};
		}
		if (r === void 0) return i ? Hn(e, t) : Vn(e);
		let c = t === 0 || e.startsWith(r);
		return s === "" ? {
			text: Cn,
			begins: c,
			special: !1
		} : Un(s, c);
	});
}
function jn(e) {
	let t = (t) => e.some((e) => e.startsWith(t));
	return t(Cn) ? Cn : t(wn) && Pn(e) ? wn : void 0;
}
var Mn = /^[¡-¬®-¿Ģ-Ń]*(?:[!-~ĉĊčĠ]|[Â-ô][¡-¬®-¿Ģ-Ń]+)*[Â-ô]?$/u, Nn = /^<.*>$|^\s*$/su;
function Pn(e) {
	return Mn.test(e.filter((e) => !Nn.test(e)).join(""));
}
var Fn = /* @__PURE__ */ new Map();
for (let e = 0, t = 256; e < 256; e++) {
	let n = e >= 33 && e <= 126 || e >= 161 && e !== 173;
	Fn.set(String.fromCharCode(n ? e : t++), e);
}
function In(e, t) {
	let n = /^<0x([0-9A-Fa-f]{2})>$/.exec(e)?.[1];
	if (n !== void 0) return [parseInt(n, 16)];
	if (!t || Nn.test(e)) return null;
	let r = Array.from(e, (e) => Fn.get(e));
	return r.every((e) => e !== void 0) ? r : null;
}
function Ln(e) {
	let t = e.map(() => ""), n = e.map(() => !1), r = [], i = [], a = () => {
		for (let e = 0; e < i.length;) {
			let a = r[e] ?? 0, o = Rn(i[e] ?? 0), s = zn(i.slice(e, e + o));
			if (o === 0 || s === null) {
				t[a] += `⟨${Bn([i[e] ?? 0])}⟩`, e += 1;
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
		note: n[r] ? { whole: `bytes ${Bn(e)} of a character` } : {}
	});
}
function Rn(e) {
	return e < 128 ? 1 : e >= 194 && e < 224 ? 2 : e >= 224 && e < 240 ? 3 : e >= 240 && e < 245 ? 4 : 0;
}
function zn(e) {
	try {
		return new TextDecoder("utf-8", {
			fatal: !0,
			ignoreBOM: !0
		}).decode(Uint8Array.from(e));
	} catch {
		return null;
	}
}
function Bn(e) {
	return e.map((e) => e.toString(16).toUpperCase().padStart(2, "0")).join(" ");
}
function Vn(e) {
	return Un(e, !0);
}
function Hn(e, t) {
	let n = e.startsWith(Tn) && e !== Tn;
	return Un(n ? e.slice(2) : e, t === 0 || !n);
}
function Un(e, t) {
	let n = Jn(e), r = Array.from(n.slice(0, 160));
	return r.length <= Dn ? {
		text: n,
		begins: t,
		special: !1
	} : {
		text: `${r.slice(0, On).join("")}…`,
		begins: t,
		special: !1,
		whole: n
	};
}
var Wn = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;
function Gn(e) {
	let t = e.filter((e) => !e.special).map((e) => e.text), n = /\p{L}/u.exec(t.join(" "))?.[0] ?? "";
	return Wn.test(n) ? "rtl" : "ltr";
}
function q(e) {
	return `\u2068${e}\u2069`;
}
var Kn = /* @__PURE__ */ new Map([
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
]), qn = /[\p{Cc}\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]|^[\u200c\u200d]+$|^[\u00a0\u3000]$/gu;
function Jn(e) {
	let t = e.replace(qn, (e) => Array.from(e, (e) => `⟨${Kn.get(e) ?? Yn(e)}⟩`).join(""));
	return t.trim() === "" ? "␣" : t;
}
function Yn(e) {
	return `U+${(e.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
}
// src/joining.ts
var Xn = "Pieces joined to words: over the pieces of a word that is looked at the weights are summed, over those of a word that looks their mean is taken.", Zn = /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u, Qn = /^…/u;
function $n(e) {
	let t = [];
	return e.forEach((n, r) => {
		let i = t.at(-1), a = n.begins || n.special || Zn.test(n.text), o = e[r - 1]?.special === !0;
		i === void 0 || o || a && !Qn.test(n.text) ? t.push({
			from: r,
			to: r + 1
		}) : i.to = r + 1;
	}), t;
}
function er(e) {
	return Array.from({ length: e }, (e, t) => ({
		from: t,
		to: t + 1
	}));
}
function tr(e, t) {
	return t.map(({ from: t, to: n }) => {
		let r = e.slice(t, n), [i] = r;
		return i !== void 0 && r.length === 1 ? i : {
			text: r.map((e) => e.text).join("").replace(/…{2,}/gu, ""),
			begins: !0,
			special: i?.special ?? !1
		};
	});
}
function nr(e, t, n) {
	let r = new Float32Array(t.length * n.length), i = Array.from({ length: e.rows }, (t, n) => rr(e, n));
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
function rr({ values: e, columns: t }, n) {
	for (let r = 0; r < t; r++) if (!Number.isNaN(e[n * t + r] ?? NaN)) return !0;
	return !1;
}
function ir(e, t) {
	let [n, r] = [0, e.length - 1];
	for (; n < r;) {
		let i = n + r + 1 >> 1;
		(e[i]?.from ?? 0) <= t ? n = i : r = i - 1;
	}
	return n;
}
// src/tile.ts
var ar = 1414288449, or = 2, sr = 28, cr = 1;
async function lr(e) {
	if (e.byteLength < sr) throw J("its header is cut off");
	let t = new DataView(e);
	if (t.getUint32(0, !0) !== ar) throw J("it does not begin with ATLT");
	if (t.getUint16(4, !0) !== or) throw J(`its version is ${t.getUint16(4, !0)}, not ${or}`);
	let n = t.getUint8(6), r = t.getUint8(7), [i, a, o] = [
		8,
		12,
		16
	].map((e) => t.getUint32(e, !0)), s = t.getUint32(24, !0);
	if (n !== 8 && n !== 16 || r !== 1 && r !== 2 || s !== 4 * i + i * a * o * n / 8) throw J("its sizes contradict each other");
	let c = await pr(new Uint8Array(e, sr), s), l = new DataView(c.buffer, c.byteOffset, c.byteLength), u = Float32Array.from({ length: i }, (e, t) => l.getFloat32(4 * t, !0));
	if (!u.every(Number.isFinite)) throw J("a scale of it is no number");
	let d = c.subarray(4 * i);
	return {
		heads: i,
		rows: a,
		keys: o,
		power: r,
		most: 2 ** n - 2,
		pyramidLevel: t.getUint16(20, !0),
		sampled: (t.getUint16(22, !0) & cr) !== 0,
		scales: u,
		levels: n === 8 ? d : mr(d)
	};
}
function ur(e, t) {
	let n = e.rows * e.keys;
	return {
		...e,
		heads: 1,
		scales: e.scales.slice(t, t + 1),
		levels: e.levels.subarray(t * n, (t + 1) * n)
	};
}
var dr = 1330402369;
async function fr(e) {
	let t = new DataView(e);
	if (e.byteLength < 8 || t.getUint32(0, !0) !== dr) throw J("it does not begin with ATLO");
	if (t.getUint16(4, !0) !== 1) throw J("its version is not 1");
	let n = t.getUint16(6, !0), r = 8 + 4 * n;
	if (e.byteLength < r) throw J("its header is cut off");
	let i = Array.from({ length: n }, (n, i) => {
		let a = r;
		return r += t.getUint32(8 + 4 * i, !0), e.slice(a, r);
	});
	if (r !== e.byteLength) throw J("its sizes contradict each other");
	return Promise.all(i.map(lr));
}
async function pr(e, t) {
	let n = new Uint8Array(t), r = 0, i = new Blob([e]).stream().pipeThrough(new DecompressionStream("deflate")).getReader();
	try {
		for (;;) {
			let { done: e, value: a } = await i.read();
			if (e) break;
			if (r + a.length > t) throw J("it holds more than it says");
			n.set(a, r), r += a.length;
		}
	} catch (e) {
		throw i.cancel().catch(() => void 0), e instanceof H ? e : J("it does not inflate");
	}
	if (r !== t) throw J("it holds less than it says");
	return n;
}
function mr(e) {
	let t = new DataView(e.buffer, e.byteOffset, e.byteLength);
	return Uint16Array.from({ length: e.length / 2 }, (e, n) => t.getUint16(2 * n, !0));
}
function J(e) {
	return new H("a whole tile of weights", `a damaged one (${e})`, "translate again");
}
// src/sheet.ts
var hr = 1 << 26;
function gr(e, t) {
	return r(t) && e.queries * e.keys > hr;
}
function _r(t, n, r, i) {
	let a = ur(t, i), o = e(n);
	return {
		layer: r,
		excerpt: o,
		tile: a,
		head: i,
		coarse: !0,
		preview: !0,
		rows: wr(o.rows, a.rows),
		keys: wr(o.keys, a.keys)
	};
}
var vr = 1 << 22, yr = 1 << 18;
function br(e, t) {
	return r(t) ? Infinity : e.heads * n(t.rows) * n(t.keys);
}
function xr(e, t) {
	return br(e, t) <= vr;
}
function Sr(e, t) {
	return br(e, t) > yr;
}
async function Cr(e, t, { layer: n, index: i, head: a }, o, s) {
	let c = r(o), l = (a === null ? !xr(n, o) : Sr(n, o)) ? Math.min(a ?? 0, n.heads - 1) : null, u = {
		excerpt: o,
		head: l
	}, [d, f] = await Promise.all([e.tile(t, i, u, s), c ? {
		rows: [],
		keys: []
	} : e.tokens(t, i, o, s)]), p = (e, t, n) => c || d.pyramidLevel > 0 ? wr(e, n) : An(t, e.to - e.from, e.from);
	return {
		layer: i,
		excerpt: o,
		tile: d,
		head: l,
		coarse: c || d.pyramidLevel > 0,
		preview: !1,
		rows: p(o.rows, f.rows, d.rows),
		keys: p(o.keys, f.keys, d.keys)
	};
}
function wr(e, t = n(e)) {
	return Array.from({ length: t }, (n, r) => {
		let { from: a, to: o } = i(e, r, t);
		return kn(o - a === 1 ? `${a}` : `${a}–${o - 1}`);
	});
}
// src/neighbours.ts
var Tr = class {
	door;
	came = R(null);
	asked = null;
	request = new AbortController();
	constructor(e) {
		this.door = e;
	}
	follow(e, t) {
		let n = t === null ? void 0 : e?.layers[t.layer], r = e?.map ?? null;
		if (t === null || n === void 0 || r === null) return this.stop();
		let i = {
			map: r,
			layer: t.layer,
			excerpt: t.excerpt
		};
		if (this.asked !== null && Er(this.asked, i) || (this.stop(), !(t.head !== null && !t.preview && n.heads > 1) || !xr(n, t.excerpt))) return;
		this.asked = i;
		let { signal: a } = this.request = new AbortController();
		this.door.tile(r, t.layer, {
			excerpt: t.excerpt,
			head: null,
			rough: !0
		}, a).then((e) => {
			a.aborted || (this.came.value = {
				asked: i,
				tiles: Array.from({ length: e.heads }, (t, n) => ur(e, n))
			});
		}, () => void 0);
	}
	sheet(e, t, n) {
		let r = this.tilesOf(e, t)?.[n];
		return e === null || r === void 0 ? null : {
			...e,
			tile: r,
			head: n,
			preview: !0
		};
	}
	stop() {
		this.request.abort(), [this.asked, this.came.value] = [null, null];
	}
	tilesOf(e, t) {
		let n = this.came.value;
		return n === null || e === null || e.coarse || t === null || t.map === null ? null : Er(n.asked, {
			map: t.map,
			layer: e.layer,
			excerpt: e.excerpt
		}) ? n.tiles : null;
	}
};
function Er(e, t) {
	return e.map === t.map && e.layer === t.layer && u(e.excerpt, t.excerpt);
}
// src/grid-layout.ts
var Dr = 3, Or = 12, kr = 44, Ar = 22, jr = 30;
function Mr(e) {
	let t = /* @__PURE__ */ new Map();
	return e.forEach(({ sheet: e }, n) => {
		t.set(e, [...t.get(e) ?? [], n]);
	}), [...t];
}
function Nr({ title: e, sheet: t }) {
	let n = /^(?:encoder|decoder|layer) (\d+)(?: · \w+)?$/.exec(e)?.[1];
	return n === void 0 ? e === t ? "" : e : n;
}
function Pr(e, t, n, r = null) {
	let i = e.reduce((e, t) => Math.max(e, t.heads), 1), a = r === null ? e.map((e) => Math.min(n(Nr(e)), t / 3)) : [], o = a.some((e) => e > 0) ? Math.max(jr, Math.max(...a) + 8) : 0, s = Math.floor((t - o) / i) - Dr, c = Math.min(Math.max(s, Or), kr), l = c + Dr, u = [], d = [], f = 0;
	if (r !== null) {
		let e = Math.max(1, Math.floor((t + Dr) / l));
		r.forEach((t, n) => {
			let [r, i] = [Math.floor(n / e), n % e];
			u.push({
				...t,
				x: i * l,
				y: r * l
			});
		}), f = Math.ceil(r.length / e) * l;
	} else for (let [t, n] of Mr(e)) {
		t !== "" && (d.push({
			text: t,
			x: 0,
			y: f + Ar / 2,
			heading: !0
		}), f += Ar);
		for (let t of n) {
			let n = e[t];
			if (n !== void 0) {
				d.push({
					text: Nr(n),
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
function Fr({ thumbnails: e, size: t }, n, r) {
	let i = (e, n) => n >= e - Dr / 2 && n < e + t + Dr / 2;
	return e.find((e) => i(e.x, n) && i(e.y, r)) ?? null;
}
function Ir(e, t) {
	return e?.layer === t?.layer && e?.head === t?.head;
}
function Lr({ thumbnails: e }, t, n) {
	let r = e.find((e) => Ir(e, t));
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
function Rr(e, t) {
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
var zr = {
	model: null,
	translating: null,
	reading: !1,
	slow: !1,
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
	order: K.order,
	scale: K.scale,
	statistic: K.statistic,
	sorted: K.sorted,
	chosen: !1,
	selected: K.selected,
	tab: K.tab,
	side: K.side,
	joined: K.joined,
	threshold: K.threshold,
	apart: K.apart,
	output: K.output,
	weight: K.weight,
	erased: K.erased,
	factor: K.factor,
	unmasked: K.unmasked,
	forced: K.forced
}, Br = {
	translating: null,
	reading: !1,
	slow: !1,
	problem: null
};
function Vr(e, t) {
	return {
		...e,
		...Br,
		translating: t
	};
}
function Hr(e) {
	return {
		...e,
		reading: !0,
		problem: null
	};
}
function Ur(e, t, n, { sheet: r, view: i, overview: a, row: o = null }) {
	let s = r?.layer ?? 0, c = {
		sentence: t,
		row: o,
		answer: n,
		sheet: r,
		view: i,
		overview: a,
		layer: s,
		head: r?.head ?? ii(e.head, n.layers[s]),
		selected: ri(e.selected, n),
		output: null,
		erased: null,
		forced: K.forced
	};
	return {
		...e,
		...Br,
		...c,
		pointed: ai(r, i),
		pinned: null
	};
}
function Wr(e, t) {
	return {
		...e,
		...Br,
		problem: t
	};
}
function Gr(e, t, n, r) {
	let i = n.head ?? ii(t, e.answer?.layers[n.layer]), a = {
		layer: n.layer,
		head: i
	}, o = $r(e), s = e.answer?.layers[n.layer], c = o?.queries === s?.queries && o?.keys === s?.keys ? e.sheet : null, l = {
		pointed: di(e.pointed, c, n) ?? ai(n, r),
		pinned: di(e.pinned, c, n)
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
function Kr(e, t, n) {
	let { sheet: r, pointed: i } = e, a = {
		...e,
		head: t,
		view: n,
		reading: !1
	};
	if (r === null || r.coarse) return a;
	if (i !== null) {
		let { side: e, index: t } = fi(i, r.excerpt, 1), o = e === "target" ? n.rows : n.keys;
		if (t >= o.from && t < o.to) return a;
	}
	return {
		...a,
		pointed: ai(r, n)
	};
}
function qr(e, t) {
	return oi(e.pointed, t) ? e : {
		...e,
		pointed: t
	};
}
function Jr(e, t) {
	return {
		...e,
		pinned: oi(e.pinned, t) ? null : t,
		pointed: t
	};
}
function Yr(e) {
	return e.pinned === null ? e : {
		...e,
		pinned: null
	};
}
function Xr(e) {
	return e.pinned ?? e.pointed;
}
var Zr = /* @__PURE__ */ new WeakMap();
function Qr(e, t) {
	if (e === null) return null;
	let { tile: n } = e, r = e.head === null ? t : 0, i = Zr.get(n) ?? /* @__PURE__ */ new Map();
	Zr.set(n, i);
	let a = i.get(r) ?? (r === null ? It(n) : Pt(n, r));
	return i.set(r, a), a;
}
function $r(e) {
	return e.answer?.layers[e.layer] ?? null;
}
function ei(e, t) {
	return e.sheet === null ? !1 : e.sheet.head === null || e.sheet.head === t;
}
function ti({ layer: e, head: t, selected: n, sheet: r }) {
	let i = t === null || r === null ? [] : [{
		layer: e,
		head: t
	}];
	return [...i, ...n.filter((e) => !i.some((t) => Ir(e, t)))];
}
function ni(e, t) {
	let { selected: n, layer: r, head: i } = e;
	if (i !== null && Ir(t, {
		layer: r,
		head: i
	})) return e;
	let a = n.filter((e) => !Ir(e, t));
	return a.length < n.length ? {
		...e,
		selected: a
	} : {
		...e,
		selected: [...n, t].slice(-5)
	};
}
function ri(e, t) {
	return t === null ? e : e.filter(({ layer: e, head: n }) => n < (t.layers[e]?.heads ?? 0));
}
function ii(e, t) {
	return e === null || t === void 0 || e >= t.heads ? null : e;
}
function ai(e, t) {
	return e === null || e.coarse || e.tile.rows === 0 ? null : {
		side: "target",
		index: t === null ? 0 : t.rows.from - e.excerpt.rows.from
	};
}
function oi(e, t) {
	return e !== null && e.side === t.side && e.index === t.index && e.partner === t.partner;
}
function si(t) {
	let { sheet: n, pinned: r, answer: i, view: a } = t, o = n?.excerpt, s = $r(t), c = s === null || a === null || u(a, e(s));
	return {
		text: t.sentence,
		row: t.row,
		layer: i === null || n === null ? null : t.layer,
		head: i === null || n === null ? null : t.head ?? "mean",
		view: c ? null : a,
		pinned: r === null || o === void 0 ? null : fi(r, o, 1),
		order: t.order,
		scale: t.scale,
		statistic: t.statistic,
		sorted: t.sorted,
		selected: t.selected,
		tab: t.tab,
		side: t.side,
		joined: t.joined,
		threshold: t.threshold,
		apart: t.apart,
		output: t.output,
		weight: t.weight,
		erased: t.erased,
		factor: t.factor,
		unmasked: t.unmasked,
		forced: t.forced
	};
}
function ci(e, t) {
	let { order: n, scale: r, statistic: i, sorted: a, selected: o, tab: s, side: c, joined: l, threshold: u, apart: d } = t, { output: f, weight: p, erased: m, factor: h, unmasked: g, forced: _ } = t, v = e.chosen || t.head !== null, y = {
		order: n,
		scale: r,
		statistic: i,
		sorted: a,
		tab: s,
		side: c,
		joined: l,
		threshold: u,
		apart: d
	}, b = {
		output: f,
		weight: p,
		erased: m,
		factor: h,
		unmasked: g,
		forced: _
	};
	return {
		...e,
		...y,
		...b,
		selected: ri(o, e.answer),
		chosen: v
	};
}
function li(e, t) {
	let { sheet: n } = e;
	if (n === null || n.coarse) return e;
	if (t === null) return {
		...e,
		pinned: null
	};
	let r = fi(t, n.excerpt, -1);
	return ui(r, n) ? {
		...e,
		pinned: r,
		pointed: r
	} : {
		...e,
		pinned: null
	};
}
function ui({ side: e, index: t, partner: n = 0 }, { tile: r }) {
	let [i, a] = e === "target" ? [r.rows, r.keys] : [r.keys, r.rows];
	return t >= 0 && t < i && n >= 0 && n < a;
}
function di(e, t, n) {
	if (e === null || t === null || t.coarse || n.coarse) return null;
	let r = fi(fi(e, t.excerpt, 1), n.excerpt, -1);
	return ui(r, n) ? r : null;
}
function fi(e, { rows: t, keys: n }, r) {
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
var pi = {
	translation: 4e3,
	weights: 500
}, mi = class {
	door;
	theme;
	address;
	current = R(zr);
	now = Object.fromEntries(Object.keys(zr).map((e) => [e, ft(() => this.current.value[e])]));
	get whole() {
		return this.current;
	}
	draft = R("");
	notice = R("");
	map = null;
	spoken = R("");
	weights = ft(() => Qr(this.now.sheet.value, this.now.head.value));
	layer = ft(() => this.now.answer.value?.layers[this.now.layer.value] ?? null);
	reading = ft(() => this.read(this.weights.value));
	heads = ft(() => {
		let [e, t, n, r] = [
			this.now.layer,
			this.now.head,
			this.now.selected,
			this.now.sheet
		];
		return ti({
			layer: e.value,
			head: t.value,
			selected: n.value,
			sheet: r.value
		});
	});
	others = R(/* @__PURE__ */ new Map());
	othersOf = null;
	othersRequest = new AbortController();
	answerRequest = new AbortController();
	sheetRequest = new AbortController();
	openingRow = null;
	pendingHead = null;
	neighbours;
	stopFetching;
	constructor(e, t, n) {
		this.door = e, this.theme = t, this.address = n, this.neighbours = new Tr(e);
		let r = [z(() => this.fetchOthers(this.heads.value, this.now.sheet.value)), z(() => this.neighbours.follow(this.now.answer.value, this.now.sheet.value))];
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
		this.current.value = qr(this.state, e);
	}
	pin(e) {
		this.update(Jr(this.state, e));
	}
	unpin() {
		this.update(Yr(this.state));
	}
	chooseLayer(e) {
		this.see(e, this.requestedHead.head);
	}
	chooseHead(e) {
		this.see(this.requestedHead.layer, e);
	}
	openText(e) {
		this.open(e);
	}
	view(e) {
		this.show(this.state.layer, this.state.head, e);
	}
	toggle(e) {
		this.update(ni(this.state, e));
	}
	matrixOf({ layer: e, head: t }) {
		let n = this.now.sheet.value;
		return n === null ? null : e === n.layer && (n.head === null || n.head === t) ? Qr(n, t) : this.others.value.get(`${e} ${t}`) ?? null;
	}
	neighbour(e) {
		return Qr(this.neighbours.sheet(this.now.sheet.value, this.now.answer.value, e), e);
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
			let [t, i] = [er(n.length), er(r.length)];
			return {
				matrix: e,
				rows: n,
				keys: r,
				rowSpans: t,
				keySpans: i
			};
		}
		let [i, a] = [$n(n), $n(r)];
		return {
			matrix: nr(e, i, a),
			rows: tr(n, i),
			keys: tr(r, a),
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
		return cn(si(this.state));
	}
	async begin(e) {
		try {
			let t = await this.door.model();
			this.update({
				...this.state,
				model: t
			});
			let { link: n, problem: r } = gi(e), i = n.text ?? t.facts.example ?? "";
			t.texts === null ? i !== "" && this.draft.peek() === "" && await this.translate(i, n) : await this.open(n.row ?? 0, n), r !== null && this.update(Wr(this.state, r));
		} catch (e) {
			this.update(Wr(this.state, H.of(e)));
		}
	}
	async follow(e) {
		if (e === cn(si(this.state))) return;
		let { link: t, problem: n } = gi(e);
		if (n !== null) return this.update(Wr(this.state, n), !1);
		let { answer: r, sentence: i, row: a, model: o, forced: c } = this.state;
		if (o?.texts !== null && o !== null) {
			if (t.row !== null && t.row !== a) return this.open(t.row, t);
		} else if (t.text !== null && (t.text !== i || t.forced.join() !== c.join())) return this.translate(t.text, t);
		if (this.update(ci(this.state, t), !1), r === null) return;
		let l = this.state.overview?.statistics.first ?? {
			layer: 0,
			head: 0
		}, u = Math.min(t.layer ?? l.layer, r.layers.length - 1), d = r.layers[u];
		if (d === void 0) return;
		let f = t.head === "mean" ? null : t.head ?? l.head;
		await this.show(u, f, s(t.view, d), !1), this.update(li(this.state, t.pinned), !1);
	}
	async translate(e, t = null) {
		if (this.state.model?.texts || (this.draft.value = e, t === null && e === this.state.translating)) return;
		let n = this.restart();
		if (e.trim() === "") {
			let e = new H("a sentence to translate", "an empty one", "type a few words");
			return this.update(Wr(this.state, e));
		}
		this.update(Vr(this.state, e)), await this.wait(n, pi.translation, async () => {
			let r = await this.door.translate(e, t?.forced ?? [], n), i = await this.first(r, t, n);
			return (n) => _i(Ur(i.from(n), e, r, i), t);
		}), await this.sharpen(n);
	}
	choose(e) {
		let { sentence: t } = this.state;
		t !== null && this.translate(t, {
			...si(this.state),
			forced: e
		});
	}
	async open(e, t = null) {
		let n = this.restart();
		this.openingRow = e, this.update(Hr(this.state)), await this.wait(n, pi.weights, async () => {
			let r = await this.door.text(e, n), i = await this.first(r, t, n);
			return (n) => _i(Ur(i.from(n), null, r, {
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
		let n = {
			...this.state,
			chosen: !0
		};
		e === this.state.layer && ei(this.state, t) ? this.update({
			...n,
			head: t
		}) : (this.current.value = n, this.show(e, t));
	}
	get requestedHead() {
		return this.pendingHead ?? this.state;
	}
	async show(e, t, n, r = !0) {
		if (this.openingRow !== null) return this.current.value = {
			...this.state,
			layer: e,
			head: t
		}, this.open(this.openingRow);
		let { answer: i } = this.state, a = i?.layers[e];
		if (i === null || a === void 0) return;
		let s = n ?? o(this.state.view, $r(this.state), a);
		if (this.sheetRequest.abort(), this.shows(e, t, s)) return this.update(Kr(this.state, t, s), r);
		this.pendingHead = {
			layer: e,
			head: t
		};
		let { signal: l } = this.sheetRequest = new AbortController(), u = this.preview(a, e, t, s);
		u !== null && this.update(Gr(this.state, t, u, s), r), this.update(Hr(this.state), r), await this.wait(l, pi.weights, async () => {
			let n = await this.sheet(i, e, t, c(s, a), l);
			return (e) => n === null ? e : Gr(e, t, n, s);
		}, r), l.aborted || (this.pendingHead = null);
	}
	preview(e, t, n, r) {
		let { answer: i, overview: a, sheet: o } = this.state, s = o?.layer === t;
		return s && ei(this.state, n) ? null : (s && n !== null && l(o.excerpt, r) ? this.neighbours.sheet(o, i, n) : null) ?? (gr(e, r) ? hi(a, e, t, n) : null);
	}
	shows(e, t, n) {
		let { sheet: r } = this.state;
		return r === null || r.layer !== e || !ei(this.state, t) || r.preview ? !1 : l(r.excerpt, n) && (!r.coarse || u(r.excerpt, n));
	}
	async first(e, t, n) {
		let r = (e) => e;
		if (e.map === null) return {
			sheet: null,
			view: null,
			overview: null,
			from: r
		};
		let [i, a] = await Promise.all([this.door.overview(e.map, n), this.door.statistics(e.map, n)]), l = {
			tiles: i,
			statistics: a,
			rightToLeft: await this.directions(e, n)
		}, u = e.layers.length - 1, d = this.state.chosen && this.state.layer <= u ? this.state : a.first, f = Math.min(t?.layer ?? d.layer, u), p = t?.head === "mean" ? null : t?.head ?? d.head, m = e.layers[f];
		if (m === void 0) return {
			sheet: null,
			view: null,
			overview: l,
			from: r
		};
		let h = t ? s(t.view, m) : o(this.state.view, $r(this.state), m), g = (t?.pinned ?? null) !== null && !gr(m, h), _ = p === null && xr(m, c(h, m));
		return {
			sheet: (g || _ || !Sr(m, c(h, m)) ? null : hi(l, m, f, p)) ?? await this.sheet(e, f, p, c(h, m), n),
			view: h,
			overview: l,
			from: (e) => ({
				...e,
				layer: f,
				head: p
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
			return Gn(An(s.keys, s.keys.length)) === "rtl" ? e : [];
		});
		return new Set((await Promise.all(a)).flat());
	}
	async sheet(e, t, n, r, i) {
		let a = e.layers[t];
		return e.map === null || a === void 0 ? null : Cr(this.door, e.map, {
			layer: a,
			index: t,
			head: n
		}, r, i);
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
			e.aborted || this.update(Wr(this.state, H.of(t)));
		} finally {
			clearTimeout(i);
		}
	}
	restart() {
		return this.answerRequest.abort(), this.sheetRequest.abort(), [this.openingRow, this.pendingHead] = [null, null], this.answerRequest = new AbortController(), this.answerRequest.signal;
	}
	pause() {
		this.answerRequest.abort(), this.sheetRequest.abort(), this.othersRequest.abort(), this.neighbours.stop();
	}
	stop() {
		this.stopFetching(), this.pause();
	}
	update(e, t = !0) {
		e !== this.state && (this.current.value = e, t && e.translating === null && !e.reading && this.address?.write(cn(si(e))));
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
				c.aborted || (this.others.value = new Map(this.others.peek()).set(u, Pt(e, 0)));
			}, (e) => {
				c.aborted || this.update(Wr(this.state, H.of(e)));
			});
		}
	}
};
function hi(e, t, n, r) {
	let i = e?.tiles[n];
	return i === void 0 ? null : _r(i, t, n, Math.min(r ?? 0, t.heads - 1));
}
function gi(e) {
	try {
		return {
			link: ln(e),
			problem: null
		};
	} catch (e) {
		return {
			link: K,
			problem: H.of(e)
		};
	}
}
function _i(e, t) {
	return t === null ? e : li(ci(e, t), t.pinned);
}
// src/panel.ts
var vi = Ee(null), yi = vi.Provider;
function Y() {
	let e = He(vi);
	if (e === null) throw Error("a panel outside of an explorer");
	return e;
}
// src/wording.ts
function bi(e) {
	let t = [];
	return e.name && t.push(e.name), e.source_language && e.target_language && t.push(`${Ci(e.source_language)} → ${Ci(e.target_language)}`), e.attention === "none" ? t.push("no attention") : e.attention && t.push(`${e.attention} attention`), typeof e.parameters == "number" && t.push(`${wi(e.parameters)} parameters`), typeof e.bleu == "number" && t.push(`validation BLEU ${e.bleu.toFixed(1)}`), t;
}
function xi(e) {
	return typeof e.bleu == "number" ? `BLEU${e.bleu_sentences ? ` on ${e.bleu_sentences} sentences` : ""}: ${e.bleu_signature ?? "signature unknown"}` : "";
}
function Si(e) {
	return e.map === null && e.blank !== "" ? `There is no looking to show: ${e.blank}.` : "";
}
function Ci(e) {
	try {
		return new Intl.DisplayNames(["en"], { type: "language" }).of(e) ?? e;
	} catch {
		return e;
	}
}
function wi(e) {
	return e >= 9995e5 ? `${(e / 1e9).toFixed(1)} billion` : e >= 1e6 ? `${(e / 1e6).toFixed(1)} million` : e.toLocaleString("en");
}
function Ti(e, t, n, r) {
	let i = Ut(n, 3).filter((e) => (n[e] ?? 0) >= .005).map((e) => `${q(r[e] ?? "")} ${U(n[e] ?? 0)}`), a = e.side === "target" ? "looked at" : "was looked at by";
	return `${q(t)}: ${a} ${i.length > 0 ? i.join(", ") : "nothing in particular"}`;
}
function Ei({ translated: e, within: t }) {
	return t ? {
		source: "Looked at",
		target: "Looking"
	} : {
		source: "Source",
		target: e ? "Translation" : "Target"
	};
}
var Di = {
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
};
function Oi(e) {
	return e === "read" ? {
		button: "Read",
		doing: "Reading",
		result: "",
		field: "Your text"
	} : e === "continue" ? {
		button: "Continue",
		doing: "Writing",
		result: "Continuation",
		field: "Your prompt"
	} : e === "answer" ? {
		button: "Answer",
		doing: "Answering",
		result: "Answer",
		field: "Your text"
	} : e === "classify" ? {
		button: "Classify",
		doing: "Reading",
		result: "Label",
		field: "Your text"
	} : {
		button: "Translate",
		doing: "Translating",
		result: "Translation",
		field: "Your sentence"
	};
}
function ki({ rows: e, keys: t }) {
	let n = ({ from: e, to: t }) => t - e === 1 ? e.toLocaleString("en") : `${e.toLocaleString("en")}–${(t - 1).toLocaleString("en")}`;
	return `rows ${n(e)} × keys ${n(t)}`;
}
function Ai(e) {
	return Di[e] ?? e;
}
var ji = {
	normalized_entropy: "entropy",
	max_weight: "largest",
	first_weight: "first",
	last_weight: "last",
	self_weight: "itself",
	previous_weight: "before",
	next_weight: "after"
};
function Mi(e) {
	return ji[e] ?? e;
}
function Ni(e, t) {
	return /_weight$|^normalized/.test(e) ? U(t) : t.toFixed(2);
}
function Pi({ title: e }, t) {
	return `${e}, ${t === null ? "mean of all heads" : `head ${t}`}`;
}
function Fi(e, t, n) {
	return e.side === "target" ? `Where “${q(t)}” looked` : `Which ${Vi(n)}s looked at “${q(t)}”`;
}
function Ii(e, t, n) {
	if (e.side === "target") {
		let e = t.within ? "token" : "source token", r = U(n.reduce((e, t) => e + t, 0));
		return `Of each ${e} here, the share of this ${Vi(t)}’s attention; together ${r}.`;
	}
	return `Of each ${t.translated && !t.within ? "word of the translation" : "token"} here, the share of its own attention that went to this one.`;
}
function Li(e, r = null) {
	if (e === null) return "";
	let [i, a] = r ? [r.rows, r.keys] : [n(e.rows), n(e.keys)], o = (e, n) => Math.ceil(t(e) / n).toLocaleString("en");
	if (r?.sampled) {
		let [t, n] = [o(e.rows, i), o(e.keys, a)];
		return `A sample: of ${t} tokens that look, each cell shows one, and its largest weight of up to ${n}.`;
	}
	return `Each cell shows the largest weight of up to ${o(e.rows, i)} × ${o(e.keys, a)}. Click a cell to see its part of the map closer.`;
}
function Ri({ translating: e, reading: t, slow: n, model: r }) {
	if (e !== null) {
		let { doing: e } = Oi(r?.facts.task);
		return n ? `Still ${e.toLowerCase()}. A long text or a large model takes its time…` : `${e}…`;
	}
	return t && n ? "Reading the weights. A long map takes its time…" : "";
}
function zi(e, t) {
	return t === "" ? String(e) : `${e}: ${t}`;
}
function Bi(e, t, n, r) {
	let { source: i, target: a } = Ei(n), o = `${e} rows (${a.toLowerCase()}), ${t} columns (${i.toLowerCase()})`;
	return r ? `A map of the largest weights: ${o}. The numbers above it show a part of it closer.` : `A map of the weights: ${o}. The rows of words above and the list of numbers beside it say the same.`;
}
function Vi(e) {
	return e.translated && !e.within ? "word" : "token";
}
// node_modules/preact/jsx-runtime/dist/jsxRuntime.mjs
var Hi = Symbol.for("pv"), Ui = 0;
Array.isArray;
function X(e, t, n, r, i, a) {
	t ||= {};
	var o, s, c = t;
	if ("ref" in c && typeof e != "function") for (s in c = {}, t) s == "ref" ? o = t[s] : c[s] = t[s];
	var l = {
		type: e,
		props: c,
		key: n,
		ref: o,
		__k: null,
		__: null,
		__b: 0,
		__e: null,
		__c: null,
		constructor: Hi,
		__v: --Ui,
		__i: -1,
		__u: 0
	};
	return (i || a) && (l.__source = i, l.__self = a), f.vnode && f.vnode(l), l;
}
// src/ask-panel.tsx
function Wi() {
	let e = Y().now.model.value;
	return e === null ? /* @__PURE__ */ X("div", { class: "ask" }) : e.texts === null ? /* @__PURE__ */ X(Gi, {}) : /* @__PURE__ */ X(Ki, { texts: e.texts });
}
function Gi() {
	let e = Y(), t = P(null), n = P(null), r = e.now.model.value?.facts, i = e.draft.value, a = Oi(r?.task), o = e.now.translating.value !== null;
	return N(() => {
		let e = t.current;
		if (e === null) return;
		let r = () => {
			e.style.setProperty("height", "auto"), e.style.setProperty("height", `${e.scrollHeight}px`);
		};
		r();
		let i = new ResizeObserver(r);
		return n.current !== null && i.observe(n.current), () => i.disconnect();
	}, [i]), /* @__PURE__ */ X("form", {
		id: "ask",
		ref: n,
		class: o ? "ask busy" : "ask",
		autocomplete: "off",
		onSubmit: (n) => {
			n.preventDefault(), e.translate(t.current?.value ?? "");
		},
		children: [/* @__PURE__ */ X("label", {
			for: "sentence",
			id: "sentence-label",
			class: "unseen",
			children: a.field
		}), /* @__PURE__ */ X("div", {
			class: "field",
			children: [/* @__PURE__ */ X("textarea", {
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
			}), /* @__PURE__ */ X("button", {
				id: "translate",
				type: "submit",
				class: "main",
				children: a.button
			})]
		})]
	});
}
function Ki({ texts: e }) {
	let t = Y(), n = t.now.row.value;
	return /* @__PURE__ */ X("div", {
		class: "ask",
		id: "texts",
		hidden: e.length < 2,
		children: [/* @__PURE__ */ X("label", { children: [
			"Text",
			" ",
			/* @__PURE__ */ X("select", {
				id: "text",
				value: String(n ?? 0),
				onChange: (e) => t.openText(Number(e.currentTarget.value)),
				children: e.slice(0, 500).map((e, t) => /* @__PURE__ */ X("option", {
					value: String(t),
					children: zi(t, e)
				}, t))
			})
		] }), e.length > 500 && /* @__PURE__ */ X("label", { children: [
			"or number",
			" ",
			/* @__PURE__ */ X("input", {
				type: "number",
				min: 0,
				max: e.length - 1,
				value: n ?? 0,
				onChange: (e) => t.openText(Number(e.currentTarget.value))
			})
		] })]
	});
}
function qi() {
	let e = Y(), { now: t } = e, n = t.problem.value, r = Ri({
		...e.state,
		translating: t.translating.value,
		reading: t.reading.value,
		slow: t.slow.value
	}), i = t.answer.value, a = t.model.value?.facts, o = i === null ? [] : [...i.remarks, Si(i)].filter((e) => e !== "");
	return /* @__PURE__ */ X("div", {
		class: "messages",
		children: [
			/* @__PURE__ */ X("p", {
				id: "problem",
				class: "problem",
				role: "alert",
				hidden: n === null,
				children: [/* @__PURE__ */ X("span", { children: n?.message ?? "" }), n?.gone === !0 && /* @__PURE__ */ X("button", {
					type: "button",
					onClick: () => e.retry(),
					children: "Try again"
				})]
			}),
			/* @__PURE__ */ X("section", {
				id: "result",
				class: t.translating.value !== null && i !== null ? "result stale" : "result",
				"aria-labelledby": "result-title",
				hidden: i === null || i.text == null && o.length === 0,
				children: [
					/* @__PURE__ */ X("h2", {
						id: "result-title",
						hidden: i?.text == null,
						children: Oi(a?.task).result
					}),
					/* @__PURE__ */ X("p", {
						id: "translation",
						class: "translation",
						dir: "auto",
						role: "status",
						lang: a?.target_language ?? void 0,
						hidden: i?.text == null,
						children: i?.text === "" ? "(The model wrote nothing.)" : i?.text ?? ""
					}),
					/* @__PURE__ */ X("p", {
						id: "remark",
						class: "remark",
						hidden: o.length === 0,
						children: o.join(" ")
					})
				]
			}),
			/* @__PURE__ */ X("p", {
				id: "progress",
				class: "progress",
				role: "status",
				hidden: r === "",
				children: r
			})
		]
	});
}
// src/pen.ts
var Ji = 2e4, Yi = class {
	fillStyle = "#000";
	strokeStyle = "#000";
	font = "13px sans-serif";
	textAlign = "left";
	textBaseline = "middle";
	lineWidth = 1;
	imageSmoothingEnabled = !0;
	parts = [];
	definitions = [];
	opened = [0];
	path = [
		0,
		0,
		0,
		0
	];
	dash = [];
	ruler = document.createElement("canvas").getContext("2d");
	file(e, t, n) {
		let r = `width="${Z(e)}" height="${Z(t)}" viewBox="0 0 ${Z(e)} ${Z(t)}"`, i = this.definitions.length > 0 ? `<defs>${this.definitions.join("")}</defs>` : "";
		return `<svg xmlns="http://www.w3.org/2000/svg" ${r} role="img"><title>${Qi(n)}</title>${i}${this.parts.join("\n")}</svg>\n`;
	}
	hatch(e) {
		return this.definitions.push(`<pattern id="hatch" width="8" height="8" patternUnits="userSpaceOnUse"><path d="M0 8 8 0M-2 2 2 -2M6 10 10 6" stroke="${Qi(e)}"/></pattern>`), "url(#hatch)";
	}
	save() {
		this.opened.push(0);
	}
	restore() {
		this.parts.push("</g>".repeat(this.opened.pop() ?? 0));
	}
	translate(e, t) {
		this.group(`transform="translate(${Z(e)} ${Z(t)})"`);
	}
	rotate(e) {
		this.group(`transform="rotate(${Z(e * 180 / Math.PI)})"`);
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
		this.definitions.push(`<clipPath id="${e}"><rect ${Zi(...this.path)}/></clipPath>`), this.group(`clip-path="url(#${e})"`);
	}
	clearRect() {}
	fillRect(e, t, n, r) {
		this.parts.push(`<rect ${Zi(e, t, n, r)} fill="${Qi(String(this.fillStyle))}"/>`);
	}
	strokeRect(e, t, n, r) {
		let i = this.dash.length > 0 ? ` stroke-dasharray="${this.dash.join(" ")}"` : "";
		this.parts.push(`<rect ${Zi(e, t, n, r)} fill="none" stroke="${Qi(String(this.strokeStyle))}" stroke-width="${this.lineWidth}"${i}/>`);
	}
	fillText(e, t, n) {
		let [, r = "", i = "13", a = "sans-serif"] = /^(\d+ )?([\d.]+)px (.*)$/su.exec(this.font) ?? [];
		this.parts.push(`<text x="${Z(t)}" y="${Z(n)}" dy="0.35em" font-family="${Qi(a)}" font-size="${i}"${r === "" ? "" : ` font-weight="${r.trim()}"`} text-anchor="${{
			center: "middle",
			right: "end",
			end: "end",
			left: "start",
			start: "start"
		}[this.textAlign]}" fill="${Qi(String(this.fillStyle))}">${Qi(e)}</text>`);
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
		], l = e.width * e.height, u = l <= Ji && Xi(e);
		if (!u) {
			this.parts.push(`<image ${Zi(a, o, s, c)} preserveAspectRatio="none" image-rendering="pixelated" href="${e.toDataURL()}"/>`);
			return;
		}
		let [d, f] = [s / e.width, c / e.height];
		for (let t = 0; t < l; t++) {
			let [n, r, i, s] = u.subarray(4 * t, 4 * t + 4);
			if (s === 0) continue;
			let [c, l] = [t % e.width, Math.floor(t / e.width)];
			this.parts.push(`<rect ${Zi(a + c * d, o + l * f, d, f)} fill="rgb(${n},${r},${i})" shape-rendering="crispEdges"/>`);
		}
	}
	setLineDash(e) {
		this.dash = e;
	}
	group(e) {
		this.parts.push(`<g ${e}>`), this.opened.push((this.opened.pop() ?? 0) + 1);
	}
};
function Xi(e) {
	let t = document.createElement("canvas");
	[t.width, t.height] = [e.width, e.height];
	let n = t.getContext("2d", { willReadFrequently: !0 });
	return n?.drawImage(e, 0, 0), n?.getImageData(0, 0, e.width, e.height).data;
}
function Z(e) {
	return Math.round(e * 1e3) / 1e3;
}
function Zi(e, t, n, r) {
	return `x="${Z(e)}" y="${Z(t)}" width="${Z(Math.max(n, 0))}" height="${Z(Math.max(r, 0))}"`;
}
function Qi(e) {
	return e.replace(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "�").replace(/[&<>"]/g, (e) => `&#${e.charCodeAt(0)};`);
}
// src/ramp.ts
var $i = la([
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
]), ea = la([
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
]), ta = ua([
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
]), na = ua([
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
function ra(e, t) {
	let n = Math.round(Math.min(Math.max(t, 0), 1) * (e.steps.length - 1));
	return e.steps[n] ?? [
		0,
		0,
		0
	];
}
var ia = /* @__PURE__ */ new WeakMap();
function aa(e) {
	let t = ia.get(e) ?? new Uint32Array(Uint8Array.from(e.steps.flatMap((e) => [...e, 255])).buffer);
	return ia.set(e, t), t;
}
function oa([e, t, n]) {
	return `rgb(${e}, ${t}, ${n})`;
}
function sa(e) {
	let t = ca(e);
	return (t + .05) / .05 >= 1.05 / (t + .05) ? "#000" : "#fff";
}
function ca(e) {
	let [t, n, r] = e.map((e) => pa(e / 255));
	return .2126 * t + .7152 * n + .0722 * r;
}
function la(e, t, n) {
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
		return da([
			e[0] + (n[0] - e[0]) * o,
			s[1] + (c[1] - s[1]) * l,
			s[2] + (c[2] - s[2]) * l
		]);
	}) };
}
function ua(e, t, n) {
	return { steps: Array.from({ length: 255 }, (r, i) => {
		let a = i / 254, o = a < .5 ? e : n, s = Math.abs(2 * a - 1);
		return da([
			t[0] + (o[0] - t[0]) * s,
			t[1] + (o[1] - t[1]) * s,
			o[2]
		]);
	}) };
}
function da([e, t, n]) {
	let r = t * Math.cos(n * Math.PI / 180), i = t * Math.sin(n * Math.PI / 180), a = (e + .3963377774 * r + .2158037573 * i) ** 3, o = (e - .1055613458 * r - .0638541728 * i) ** 3, s = (e - .0894841775 * r - 1.291485548 * i) ** 3;
	return [
		fa(4.0767416621 * a - 3.3077115913 * o + .2309699292 * s),
		fa(-1.2684380046 * a + 2.6097574011 * o - .3413193965 * s),
		fa(-.0041960863 * a - .7034186147 * o + 1.707614701 * s)
	];
}
function fa(e) {
	let t = e <= .0031308 ? 12.92 * e : 1.055 * e ** (1 / 2.4) - .055;
	return Math.round(Math.min(Math.max(t, 0), 1) * 255);
}
function pa(e) {
	return e <= .04045 ? e / 12.92 : ((e + .055) / 1.055) ** 2.4;
}
// src/painting.ts
function ma({ matrix: e, shade: t }, n, r = !1) {
	let i = document.createElement("canvas");
	if (e.rows === 0 || e.columns === 0) return i;
	[i.width, i.height] = [e.columns, e.rows];
	let a = new ImageData(e.columns, e.rows), [o, s, { rows: c, columns: l, values: u }] = [
		new Uint32Array(a.data.buffer),
		aa(n),
		e
	], d = s.length - 1;
	for (let e = 0; e < c; e++) {
		let n = e * l;
		for (let i = 0; i < l; i++) {
			let a = u[n + i] ?? 0;
			if (Number.isNaN(a)) continue;
			let c = Math.min(Math.max(t(a, e), 0), 1);
			o[n + (r ? l - 1 - i : i)] = s[Math.round(c * d)] ?? 0;
		}
	}
	return i.getContext("2d")?.putImageData(a, 0, 0), i;
}
function ha(e, t) {
	if (e instanceof Yi) return e.hatch(t);
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
function ga(e, t, n) {
	if (e.measureText(t).width <= n) return t;
	let r = Array.from(t.slice(0, 200));
	for (; r.length > 1 && e.measureText(`${r.join("")}…`).width > n;) r.pop();
	return `${r.join("")}…`;
}
function _a(e, t, n, { x: r, y: i, width: a }, o, s) {
	for (let n = 0; n < 64; n++) e.fillStyle = oa(ra(t, n / 63)), e.fillRect(r + n * a / 64, i, a / 64 + .5, 10);
	e.fillStyle = o, e.font = `11px ${s}`, e.textBaseline = "middle", n.forEach(({ share: t, text: o }, s) => {
		let c = n.length === 2 && s === 1;
		e.textAlign = t === 0 ? "left" : c || t === 1 ? "right" : "center", e.fillText(o, r + t * a, i + 20);
	});
}
function va(e, t, n) {
	let r = Math.max(1, window.devicePixelRatio);
	[e.width, e.height] = [Math.max(Math.round(t * r), 1), Math.max(Math.round(n * r), 1)], e.style.setProperty("width", `${t}px`), e.style.setProperty("height", `${n}px`), e.getContext("2d")?.setTransform(r, 0, 0, r, 0, 0);
}
// src/head-grid.ts
var ya = 3, ba = class {
	theme;
	canvas;
	room;
	readout;
	choose;
	toggle;
	heads = null;
	plan = null;
	pictures = /* @__PURE__ */ new Map();
	pointed = null;
	marks;
	constructor(e, t, n, r, i, a) {
		this.theme = e, this.canvas = t, this.room = n, this.readout = r, this.choose = i, this.toggle = a, this.marks = document.createElement("canvas"), this.marks.className = "marks", this.marks.ariaHidden = "true", t.after(this.marks);
		let o = (e) => {
			let n = t.getBoundingClientRect();
			return this.plan && Fr(this.plan, e.clientX - n.left, e.clientY - n.top);
		};
		t.addEventListener("pointermove", (e) => this.point(o(e))), t.addEventListener("pointerleave", () => this.point(null)), t.addEventListener("click", (e) => {
			let t = o(e);
			t !== null && (e.shiftKey || e.ctrlKey || e.metaKey ? this.toggle(t) : this.choose(t));
		}), t.addEventListener("keydown", (e) => this.pressed(e)), t.addEventListener("blur", () => this.point(null)), new ResizeObserver(() => this.redraw()).observe(n);
	}
	draw(e) {
		let t = this.heads;
		this.heads = e;
		let n = (n) => e[n] === t?.[n];
		n("overview") && n("ramp") && n("scale") || this.pictures.clear();
		let r = e.statistic === t?.statistic && e.sorted === t.sorted;
		this.pictures.size > 0 && this.plan !== null && e.layers === t?.layers && r ? this.mark() : this.redraw();
	}
	point(e) {
		Ir(e, this.pointed) || (this.pointed = e, this.mark());
	}
	pressed(e) {
		if (e.ctrlKey || e.altKey || e.metaKey || this.plan === null) return;
		let t = this.pointed ?? this.heads?.shown ?? null;
		if (e.key === "Enter" || e.key === " ") {
			if (e.preventDefault(), t === null) return;
			e.key === " " && !Ir(t, this.heads?.shown ?? null) ? this.toggle(t) : this.choose(t);
		} else /^(Arrow(Left|Right|Up|Down)|Home|End)$/.test(e.key) && (e.preventDefault(), this.point(Lr(this.plan, t, e.key)));
	}
	redraw() {
		let { heads: e } = this, t = this.room.clientWidth, n = this.canvas.getContext("2d");
		if (e === null || n === null || t === 0) return;
		let r = this.theme.font;
		n.font = `12px ${r}`;
		let i = (e) => n.measureText(e).width, a = e.sorted && e.statistic !== null ? Rr(e.layers, (t) => xa(e, t)) : null, o = Pr(e.layers, t, i, a);
		this.plan = o;
		for (let e of [this.canvas, this.marks]) {
			let t = Math.max(1, window.devicePixelRatio);
			e.width = Math.round(o.width * t), e.height = Math.round(o.height * t), e.style.setProperty("width", `${o.width}px`), e.style.setProperty("height", `${o.height}px`), e.getContext("2d")?.setTransform(t, 0, 0, t, 0, 0);
		}
		n.textBaseline = "middle";
		for (let { text: e, x: t, y: i, heading: a } of o.writing) n.font = `${a ? "600 " : ""}12px ${r}`, n.fillStyle = this.theme.tone("quiet"), n.textAlign = a ? "left" : "right", n.fillText(e, t, i, a ? o.width : Math.max(t, 1));
		this.drawPictures(n, o, e), this.mark();
	}
	drawPictures(e, t, n) {
		let r = Math.max(...t.thumbnails.map((e) => xa(n, e) ?? 0), 1e-9);
		e.imageSmoothingQuality = "high";
		for (let i of t.thumbnails) {
			let a = n.statistic === null ? null : xa(n, i), o = n.statistic === null ? t.size : t.size - ya - 1;
			e.fillStyle = this.theme.tone("line"), e.fillRect(i.x, i.y, t.size, o);
			let s = this.picture(n, i);
			s !== null && e.drawImage(s, i.x, i.y, t.size, o), a !== null && (e.fillStyle = this.theme.tone("action"), e.fillRect(i.x, i.y + t.size - ya, a / r * t.size, ya));
		}
	}
	picture(e, { layer: t, head: n }) {
		let r = `${t} ${n}`, i = this.pictures.get(r);
		if (i !== void 0) return i;
		let [a, o] = [e.overview[t], e.layers[t]];
		if (a === void 0 || o === void 0) return null;
		let s = Pt(a, n), c = ma({
			matrix: s,
			shade: qt(e.scale, s, o.keys)
		}, e.ramp, e.rightToLeft.has(t));
		return this.pictures.set(r, c), c;
	}
	mark() {
		let { heads: e, plan: t } = this, n = this.marks.getContext("2d");
		if (e === null || t === null || n === null) return;
		n.clearRect(0, 0, t.width, t.height);
		let r = (e, r, i) => {
			let a = t.thumbnails.find((t) => Ir(t, e));
			a !== void 0 && (n.strokeStyle = i, n.lineWidth = r, n.strokeRect(a.x, a.y, t.size, t.size));
		};
		e.together.forEach((t, n) => r(t, 3, e.colours[n] ?? "")), e.together.length < 2 ? r(e.shown, 3, this.theme.tone("accent")) : r(e.shown, 4, e.colours[0] ?? ""), r(this.pointed, 2, this.theme.tone("ink"));
		let i = this.pointed ?? e.shown, a = i === null ? void 0 : e.layers[i.layer];
		if (i === null || a === void 0) {
			this.readout.textContent = "mean of all heads";
			return;
		}
		let o = xa(e, i), s = e.statistic === null || o === null ? "" : `: ${Ai(e.statistic)} ${Ni(e.statistic, o)}`;
		this.readout.textContent = `${Pi(a, i.head)}${s}`, this.canvas.title = a.name;
	}
};
function xa({ statistics: e, statistic: t }, { layer: n, head: r }) {
	return t === null ? null : e.layers[n]?.[t]?.[r] ?? null;
}
// src/heads-panel.tsx
function Sa() {
	let e = Y(), { now: t, theme: n } = e, r = P(null), i = P(null), a = P(null), o = P(null);
	N(() => {
		r.current !== null && i.current !== null && a.current !== null && (o.current = new ba(n, r.current, i.current, a.current, ({ layer: t, head: n }) => e.see(t, n), (t) => e.toggle(t)), s());
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
			sorted: t.sorted.value
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
	V(s);
	let c = t.overview.value?.statistics, l = (c?.names ?? []).filter((e) => c?.layers.some((t) => t[e])), u = e.heads.value.length;
	return /* @__PURE__ */ X(k, { children: [
		/* @__PURE__ */ X("div", {
			class: "pane-head",
			children: [/* @__PURE__ */ X("h2", {
				id: "heads-title",
				children: "Heads"
			}), /* @__PURE__ */ X("button", {
				type: "button",
				class: "quiet",
				hidden: u < 2,
				onClick: () => e.set({ selected: [] }),
				children: [u, " selected · clear"]
			})]
		}),
		/* @__PURE__ */ X("div", {
			class: "heads-choices",
			children: [/* @__PURE__ */ X("label", { children: [
				"marked by",
				" ",
				/* @__PURE__ */ X("select", {
					id: "statistic",
					value: t.statistic.value ?? "",
					onChange: (t) => e.set({ statistic: t.currentTarget.value || null }),
					children: [/* @__PURE__ */ X("option", {
						value: "",
						children: "nothing"
					}), l.map((e) => /* @__PURE__ */ X("option", {
						value: e,
						children: Ai(e)
					}, e))]
				})
			] }), /* @__PURE__ */ X("label", { children: [
				/* @__PURE__ */ X("input", {
					id: "sorted",
					type: "checkbox",
					checked: t.sorted.value,
					disabled: t.statistic.value === null,
					onChange: (t) => e.set({ sorted: t.currentTarget.checked })
				}),
				" ",
				"sorted"
			] })]
		}),
		/* @__PURE__ */ X("div", {
			class: "grid-room",
			ref: i,
			children: /* @__PURE__ */ X("div", {
				class: "stack",
				children: /* @__PURE__ */ X("canvas", {
					id: "grid",
					ref: r,
					tabIndex: 0,
					role: "application",
					"aria-roledescription": "grid of heads",
					"aria-labelledby": "heads-title",
					"aria-describedby": "grid-readout grid-help"
				})
			})
		}),
		/* @__PURE__ */ X("p", {
			id: "grid-readout",
			class: "hint",
			ref: a,
			"aria-live": "polite"
		}),
		/* @__PURE__ */ X("p", {
			id: "grid-help",
			class: "unseen",
			children: "Arrow keys move, Enter shows a head, Space selects it beside the others."
		})
	] });
}
// src/help-dialog.tsx
var Ca = [
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
function wa({ open: e }) {
	let t = P(null);
	return N(() => {
		e.value ? t.current?.showModal() : t.current?.close();
	}, [e.value]), /* @__PURE__ */ X("dialog", {
		id: "help-dialog",
		ref: t,
		"aria-labelledby": "help-title",
		onClose: () => e.value = !1,
		onClick: (n) => {
			n.target === t.current && (e.value = !1);
		},
		children: /* @__PURE__ */ X("div", {
			class: "help",
			children: [
				/* @__PURE__ */ X("h2", {
					id: "help-title",
					children: "How to read this"
				}),
				/* @__PURE__ */ X("p", { children: "Each row of the map is a token that looks, each column a token that is looked at. The darker a cell, the more of the row’s attention went there. A row adds up to 100 %. Hatching says that no query may look there." }),
				/* @__PURE__ */ X("p", { children: "On the left are all heads of all layers. Point at a word on the right: the words that it looks at light up, and the bars below say how much." }),
				/* @__PURE__ */ X("table", { children: /* @__PURE__ */ X("tbody", { children: Ca.map(([e, t, n]) => /* @__PURE__ */ X("tr", { children: [
					/* @__PURE__ */ X("th", {
						scope: "row",
						children: e
					}),
					/* @__PURE__ */ X("td", { children: /* @__PURE__ */ X("kbd", { children: t }) }),
					/* @__PURE__ */ X("td", { children: n })
				] }, e + t)) }) }),
				/* @__PURE__ */ X("p", {
					class: "note",
					children: "The address always is a link to what is on screen. Back undoes."
				}),
				/* @__PURE__ */ X("button", {
					type: "button",
					class: "main",
					onClick: () => e.value = !1,
					children: "Close"
				})
			]
		})
	});
}
// src/beams.ts
function Ta(e) {
	return Ea(e, [...e.keys()], 0);
}
function Ea(e, t, n) {
	let r = (t, n) => e[t]?.tokens[n], i = /* @__PURE__ */ new Map();
	for (let e of t) {
		let t = r(e, n);
		t !== void 0 && i.set(t, [...i.get(t) ?? [], e]);
	}
	return [...i.values()].map((t) => {
		let [i = 0] = t, a = n + 1, o = () => r(i, a) !== void 0 && t.every((e) => r(e, a) === r(i, a));
		for (; o();) a++;
		return {
			text: Da(e[i]?.tokens ?? [], n, a),
			next: Ea(e, t, a),
			leaf: t.find((t) => e[t]?.tokens.length === a) ?? null
		};
	});
}
function Da(e, t, n) {
	return An(e, e.length).slice(t, n).map(({ text: e, begins: t }, n) => t && n > 0 ? ` ${e}` : e).join("");
}
function Oa({ outputs: e }, t, n) {
	return [...e.slice(0, t).map((e) => e.id), n];
}
function ka(e) {
	return e === null ? "−∞" : e.toFixed(2).replace("-", "−");
}
// src/beams-panel.tsx
var Aa = 20;
function ja() {
	let e = Y(), { now: t, door: n } = e, r = B(null), i = B(""), a = P(null), o = P(!1), s = t.answer.value, c = s?.map ?? null;
	N(() => {
		if (c === null || n.beams === void 0) return;
		let e = new AbortController();
		return n.beams(c, e.signal).then((t) => {
			e.signal.aborted || ([r.value, i.value] = [{
				map: c,
				beams: t
			}, ""]);
		}, (t) => {
			e.signal.aborted || (i.value = H.of(t).message);
		}), () => e.abort();
	}, [c]);
	let l = r.value;
	if (N(() => {
		l !== null && l.map === c && o.current && (o.current = !1, a.current?.focus());
	}, [l?.map]), l === null || s === null) return /* @__PURE__ */ X("p", {
		class: i.value === "" ? "hint empty" : "problem",
		role: i.value === "" ? "status" : "alert",
		children: i.value || "Searching…"
	});
	let { beams: u } = l, d = t.forced.value, f = l.map !== c || t.translating.value !== null, p = (t) => {
		o.current = !0, e.choose(t);
	}, m = u.outputs.map(({ token: e }) => e), [h] = u.hypotheses;
	return /* @__PURE__ */ X("div", {
		class: "doubt beams",
		children: [
			/* @__PURE__ */ X("div", {
				class: "aside",
				children: [
					/* @__PURE__ */ X("h3", { children: "What else could it have written?" }),
					/* @__PURE__ */ X("p", { children: [
						"A beam search keeps several beginnings at each step. The tree has the ",
						u.hypotheses.length,
						" best translations with which it ends. What they begin with alike stands once.",
						h !== void 0 && h.tokens.join(" ") !== m.join(" ") && " What stands above was written without such a search."
					] }),
					d.length > 0 && /* @__PURE__ */ X("p", { children: [
						"You chose how this one begins: “",
						/* @__PURE__ */ X("bdi", { children: Da(m, 0, d.length) }),
						"”.",
						" ",
						/* @__PURE__ */ X("button", {
							id: "free",
							type: "button",
							onClick: () => p([]),
							children: "Let the model choose"
						})
					] }),
					/* @__PURE__ */ X("p", {
						class: "note",
						children: [
							/* @__PURE__ */ X("b", { children: "log p" }),
							" is the logarithm of the probability of all tokens. The ",
							/* @__PURE__ */ X("b", { children: "score" }),
							" is what the search compares: log p, corrected by the settings of the search, as for the length."
						]
					}),
					/* @__PURE__ */ X("p", {
						class: "problem",
						role: "alert",
						hidden: i.value === "",
						children: i.value
					})
				]
			}),
			/* @__PURE__ */ X("div", {
				class: f ? "tree stale" : "tree",
				tabIndex: 0,
				role: "region",
				"aria-label": "Hypotheses",
				"aria-busy": f,
				children: /* @__PURE__ */ X(Ma, {
					branches: Ta(u.hypotheses),
					beams: u
				})
			}),
			/* @__PURE__ */ X("div", {
				class: f ? "table-room stale" : "table-room",
				ref: a,
				tabIndex: 0,
				role: "region",
				"aria-label": "Alternatives",
				"aria-busy": f,
				children: /* @__PURE__ */ X(Pa, {
					beams: u,
					forced: d.length,
					choose: p
				})
			})
		]
	});
}
function Ma({ branches: e, beams: t }) {
	return /* @__PURE__ */ X("ul", { children: e.map(({ text: e, next: n, leaf: r }, i) => {
		let a = r === null ? void 0 : t.hypotheses[r];
		return /* @__PURE__ */ X("li", { children: [/* @__PURE__ */ X("span", {
			class: r === 0 ? "words own" : "words",
			children: [/* @__PURE__ */ X("bdi", { children: e }), a !== void 0 && /* @__PURE__ */ X("span", {
				class: "number",
				"data-hypothesis": r,
				children: [
					"score ",
					ka(a.score),
					" · log p ",
					ka(a.log_probability),
					!a.finished && " · not ended"
				]
			})]
		}), n.length > 0 && /* @__PURE__ */ X(Ma, {
			branches: n,
			beams: t
		})] }, i);
	}) });
}
function Na(e) {
	return Da([e], 0, 1);
}
function Pa({ beams: e, forced: t, choose: n }) {
	let { now: r } = Y(), i = B(null), { outputs: a } = e, o = r.layer.value, s = r.answer.value?.doubt?.rows[o] === !0 ? r.pinned.value : null, c = s?.side === "target" ? s.index : s?.partner, l = c === void 0 ? null : c + (r.sheet.value?.excerpt.rows.from ?? 0);
	N(() => void (i.value = null), [e, l]);
	let u = Math.ceil(a.length / Aa), d = Math.min(i.value ?? Math.floor((l ?? 0) / Aa), u - 1), f = Math.max(d, 0) * Aa, p = a.slice(f, f + Aa);
	return /* @__PURE__ */ X(k, { children: [/* @__PURE__ */ X("table", {
		id: "alternatives",
		children: [
			/* @__PURE__ */ X("caption", { children: "Token by token: what is most probable after those before it. Choose one to go on from there; marks of the model, such as ⟨end⟩, cannot be chosen." }),
			/* @__PURE__ */ X("thead", { children: /* @__PURE__ */ X("tr", { children: [
				/* @__PURE__ */ X("th", {
					scope: "col",
					children: "written"
				}),
				/* @__PURE__ */ X("th", {
					scope: "col",
					children: "p"
				}),
				/* @__PURE__ */ X("th", {
					scope: "col",
					children: "most probable"
				})
			] }) }),
			/* @__PURE__ */ X("tbody", { children: p.map((r, i) => /* @__PURE__ */ X("tr", {
				class: f + i === l ? "partner" : void 0,
				"data-output": f + i,
				children: [
					/* @__PURE__ */ X("th", {
						scope: "row",
						children: [/* @__PURE__ */ X("bdi", { children: Na(r.token) }), f + i < t && /* @__PURE__ */ X("small", { children: " (chosen)" })]
					}),
					/* @__PURE__ */ X("td", { children: W(Math.exp(r.log_probability ?? -Infinity)) }),
					/* @__PURE__ */ X("td", {
						class: "five",
						children: r.top.map((t) => /* @__PURE__ */ X(Fa, {
							output: r,
							one: t,
							choose: () => n(Oa(e, f + i, t.id))
						}, t.id))
					})
				]
			}, f + i)) })
		]
	}), u > 1 && /* @__PURE__ */ X("p", {
		class: "buttons",
		children: [
			/* @__PURE__ */ X("button", {
				type: "button",
				disabled: d === 0,
				onClick: () => i.value = d - 1,
				children: "Earlier"
			}),
			/* @__PURE__ */ X("button", {
				type: "button",
				disabled: d === u - 1,
				onClick: () => i.value = d + 1,
				children: "Later"
			}),
			/* @__PURE__ */ X("span", {
				class: "note",
				children: [
					f,
					"–",
					f + p.length - 1,
					" of ",
					a.length
				]
			})
		]
	})] });
}
function Fa({ output: e, one: t, choose: n }) {
	let r = t.id === e.id, i = /* @__PURE__ */ X(k, { children: [
		/* @__PURE__ */ X("bdi", { children: Na(t.token) }),
		" ",
		U(t.probability)
	] });
	return r || !t.open ? /* @__PURE__ */ X("span", {
		class: r ? "own" : void 0,
		children: i
	}) : /* @__PURE__ */ X("button", {
		type: "button",
		class: "link",
		onClick: n,
		children: i
	});
}
// src/heads-legend.tsx
function Ia() {
	let e = Y(), { now: t, theme: n } = e;
	n.changes.value;
	let r = t.answer.value?.layers ?? [], i = e.heads.value;
	return /* @__PURE__ */ X(k, { children: [/* @__PURE__ */ X("ul", {
		class: "heads-legend",
		"aria-label": "Heads",
		children: [i.map((t, i) => {
			let a = r[t.layer];
			if (a === void 0) return null;
			let o = !e.alike(t);
			return /* @__PURE__ */ X("li", {
				class: o ? "apart" : void 0,
				children: [
					/* @__PURE__ */ X("span", {
						class: "swatch",
						ref: (e) => e?.style.setProperty("--paint", n.heads[i] ?? ""),
						"aria-hidden": "true"
					}),
					Pi(a, t.head),
					o && " (another shape)",
					i > 0 && /* @__PURE__ */ X("button", {
						type: "button",
						class: "quiet",
						"aria-label": "Let it go",
						onClick: () => e.toggle(t),
						children: "×"
					})
				]
			}, `${t.layer}.${t.head}`);
		}), i.length === 0 && /* @__PURE__ */ X("li", { children: "mean of all heads" })]
	}), i.length < 2 && /* @__PURE__ */ X("p", {
		class: "note",
		children: [
			"Select more heads on the left: ",
			/* @__PURE__ */ X("kbd", { children: "Shift" }),
			" and a click, or ",
			/* @__PURE__ */ X("kbd", { children: "Space" }),
			"."
		]
	})] });
}
// src/insight.ts
var La = .25;
function Ra(e) {
	let { rows: t, columns: n, values: r } = e, i = new Float64Array(n), a = 0;
	for (let e = 0; e < t * n; e++) {
		let t = r[e] ?? NaN;
		Number.isNaN(t) || (i[e % n] = (i[e % n] ?? 0) + t, a += t);
	}
	let o = Math.max(La, Math.min(4 / n, 1)) * a;
	return a === 0 ? [] : [...i.keys()].filter((e) => (i[e] ?? 0) >= o);
}
function za(e, t, n = /* @__PURE__ */ new Set()) {
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
			if (zt(e, s, t)) continue;
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
function Ba(e, t = /* @__PURE__ */ new Set()) {
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
function Va(e, t) {
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
function Ha(e, t, n) {
	let { normalized_entropy: r, max_weight: i, queries: a } = e;
	if (a === 0 || Number.isNaN(r)) return [`${t} has no query that looks at anything${n ? " that is not set aside" : ""}.`];
	let o = [`${t} is ${r < .35 ? "sharp" : r > .8 ? "diffuse" : "neither sharp nor diffuse"}: its largest weight is ${U(i)} on average, its entropy ${U(r)} of the most.`], [s, c] = [
		[e.previous_weight, "the token before"],
		[e.next_weight, "the token after"],
		[e.self_weight, "the token itself"],
		[e.first_weight, "the first token"],
		[e.last_weight, "the last token"]
	].filter(([e]) => Number.isFinite(e)).reduce((e, t) => t[0] > e[0] ? t : e, [0, ""]);
	return s >= .3 ? o.push(`It looks mostly at ${c}: ${U(s)} of its attention.`) : Number.isFinite(e.distance) ? o.push(`It looks ${e.distance.toFixed(1)} tokens away on average, at no one place first of all.`) : o.push("It looks at no one place first of all."), n && o.push(`Set aside were ${U(1 - e.left)} of its attention.`), o;
}
// src/compare-panel.tsx
function Ua() {
	let e = Y(), { now: t, theme: n } = e, r = n.changes.value, [i, a] = e.heads.value, o = t.answer.value?.layers ?? [], s = e.layer.value, c = t.scale.value;
	if (i === void 0 || a === void 0 || s === null) return /* @__PURE__ */ X("div", {
		class: "compare",
		children: [/* @__PURE__ */ X("div", {
			class: "aside",
			children: [/* @__PURE__ */ X("h3", { children: "Two heads side by side" }), /* @__PURE__ */ X(Ia, {})]
		}), /* @__PURE__ */ X("p", {
			class: "hint empty",
			children: "Select a second head in the grid of heads: its map stands here, and the difference of the two."
		})]
	});
	let [l, u] = [e.matrixOf(i), e.matrixOf(a)], d = (e) => {
		let t = o[e.layer];
		return t === void 0 ? "" : Pi(t, e.head);
	}, f = t.overview.value?.rightToLeft.has(i.layer) ?? !1;
	if (l === null || u === null || l.values.length !== u.values.length) return /* @__PURE__ */ X("div", {
		class: "compare",
		children: [/* @__PURE__ */ X("div", {
			class: "aside",
			children: [/* @__PURE__ */ X("h3", { children: "Two heads side by side" }), /* @__PURE__ */ X(Ia, {})]
		}), /* @__PURE__ */ X("p", {
			class: "hint empty",
			children: e.alike(a) ? "The weights of the second head are on their way." : "The two maps have other rows and keys, so there is no difference to show. Select a head of a layer with the same texts."
		})]
	});
	let { moved: p, correlation: m, matrix: h } = Va(l, u), g = Math.max(h.values.reduce((e, t) => Math.max(e, Math.abs(t) || 0), 0), .01), _ = [
		{
			share: 0,
			text: `−${U(g)}`
		},
		{
			share: .5,
			text: "the same"
		},
		{
			share: 1,
			text: `+${U(g)}`
		}
	];
	return /* @__PURE__ */ X("div", {
		class: "compare",
		children: [
			/* @__PURE__ */ X("div", {
				class: "aside",
				children: [
					/* @__PURE__ */ X("h3", { children: "Two heads side by side" }),
					/* @__PURE__ */ X(Ia, {}),
					/* @__PURE__ */ X("p", {
						id: "compared",
						children: [
							"On average ",
							U(p),
							" of a row’s attention would have to move to make the two alike.",
							Number.isFinite(m) && ` Their weights correlate by ${m.toFixed(2).replace("-", "−")}.`
						]
					})
				]
			}),
			/* @__PURE__ */ X(Wa, {
				title: d(i),
				matrix: l,
				ramp: n.ramp,
				shade: qt(c, l, s.keys),
				ticks: Yt(c, Ht(l)),
				flipped: f,
				changes: r
			}),
			/* @__PURE__ */ X(Wa, {
				title: d(a),
				matrix: u,
				ramp: n.ramp,
				shade: qt(c, u, s.keys),
				ticks: Yt(c, Ht(u)),
				flipped: f,
				changes: r
			}),
			/* @__PURE__ */ X(Wa, {
				title: "the first − the second",
				matrix: h,
				ramp: n.differences,
				shade: (e) => .5 + e / (2 * g),
				ticks: _,
				flipped: f,
				changes: r
			})
		]
	});
}
function Wa({ title: e, matrix: t, ramp: n, shade: r, ticks: i, flipped: a, changes: o }) {
	let { theme: s } = Y(), c = P(null), l = P(null), u = P(null);
	return N(() => {
		let e = () => {
			let [e, o] = [l.current?.getContext("2d"), u.current?.getContext("2d")];
			if (!e || !o || l.current === null || u.current === null || c.current === null) return;
			let [d, f] = [c.current.clientWidth, c.current.clientHeight];
			if (d === 0 || f === 0) return;
			let p = Math.min(d / t.columns, f / t.rows), [m, h] = [t.columns * p, t.rows * p];
			va(l.current, m, h), e.fillStyle = ha(e, s.tone("line")) ?? s.tone("line"), e.fillRect(0, 0, m, h), a && (e.translate(m, 0), e.scale(-1, 1)), e.imageSmoothingEnabled = !1;
			let g = ma({
				matrix: t,
				shade: r
			}, n);
			g.width > 0 && e.drawImage(g, 0, 0, m, h), va(u.current, d, 28), _a(o, n, i, {
				x: 0,
				y: 0,
				width: d
			}, s.tone("quiet"), s.font);
		};
		e();
		let o = new ResizeObserver(e);
		return c.current !== null && o.observe(c.current), () => o.disconnect();
	}, [
		t,
		o,
		r,
		a
	]), /* @__PURE__ */ X("figure", {
		class: "small-map",
		children: [
			/* @__PURE__ */ X("figcaption", { children: e }),
			/* @__PURE__ */ X("div", {
				class: "small-room",
				ref: c,
				children: /* @__PURE__ */ X("canvas", {
					ref: l,
					role: "img",
					"aria-label": `Map: ${e}`
				})
			}),
			/* @__PURE__ */ X("canvas", {
				ref: u,
				role: "img",
				"aria-label": `Colours: ${i.map(({ text: e }) => e).join(", ")}`
			})
		]
	});
}
// src/bars.ts
var Ga = 26, Ka = 260, qa = 24, Ja = 8, Ya = class {
	list;
	labels = [];
	weights = [];
	indices = [];
	top = -1;
	shade = null;
	before = document.createElement("li");
	after = document.createElement("li");
	lines = [];
	shown = [];
	size = {
		width: 0,
		height: 0
	};
	offset = 0;
	scrolling = !1;
	constructor(e) {
		this.list = e;
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
		let i = Wt(t);
		[this.labels, this.weights, this.shade] = [
			e,
			t,
			r
		], this.indices = n === "weight" ? i : t.map((e, t) => t), this.top = i[0] ?? -1, this.bring();
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
		return e >= 2 * Ka ? Math.max(Math.floor(t / Ga), 1) : null;
	}
	get measures() {
		let { each: e } = this;
		return e === null ? {
			step: Ga,
			size: 1,
			room: Math.max(this.size.height, 208)
		} : {
			step: Ka,
			size: e,
			room: this.size.width
		};
	}
	render() {
		let { list: e, indices: t, each: n } = this, { step: r, size: i, room: a } = this.measures, [o, s] = [Math.ceil(t.length / i), n === null ? Ja : 1], c = Math.min(Math.max(Math.floor(this.offset / r) - s, 0), Math.max(o - 1, 0)), l = Math.min(c + Math.ceil(a / r) + 2 * s, o);
		e.classList.toggle("columns", n !== null), e.style.setProperty("--lines", String(i)), e.style.setProperty("grid-template-columns", c > 0 ? `${c * r - qa}px` : "none"), this.before.style.setProperty("--room", `${c * r}px`), this.after.style.setProperty("--room", `${(o - l) * r}px`);
		let u = t.slice(c * i, l * i).map((e, t) => this.line(e, c * i + t, t)), d = [
			...c > 0 ? [this.before] : [],
			...u,
			...l < o ? [this.after] : []
		];
		d.length === this.shown.length && d.every((e, t) => e === this.shown[t]) || e.replaceChildren(...d), this.shown = d;
	}
	line(e, t, n) {
		let { shade: r, weights: i, labels: a } = this, o = i[e] ?? 0, s = this.lines[n] ??= Za();
		s.dataset.index = String(e), s.setAttribute("aria-posinset", String(t + 1)), s.setAttribute("aria-setsize", String(i.length)), s.classList.toggle("top", e === this.top && o > 0), s.classList.toggle("partner", e === r?.partner), s.classList.toggle("special", a[e]?.special ?? !1);
		let [c, l, u] = s.children, d = l.firstElementChild;
		return Xa(c, a[e]?.text ?? ""), Xa(u, W(o)), c.title = a[e]?.whole?.slice(0, 2e4) ?? "", d.style.setProperty("width", `${(o * 100).toFixed(2)}%`), r && d.style.setProperty("background-color", oa(ra(r.ramp, r.dark(o, e)))), s;
	}
};
function Xa(e, t) {
	e.textContent !== t && (e.textContent = t);
}
function Za() {
	let e = document.createElement("li");
	e.className = "line";
	let t = (e, t) => {
		let n = document.createElement(e);
		return n.className = t, n;
	}, n = t("span", "track");
	return n.append(t("span", "bar")), e.append(t("bdi", "word"), n, t("span", "number")), e;
}
// src/token-row.ts
var Qa = 120, $a = class {
	row;
	handlers;
	labels = [];
	first = 0;
	spoken = () => "";
	buttons = [];
	painted = [];
	from = 0;
	shades = null;
	ramp = null;
	constructor(e, t) {
		this.row = e, this.handlers = t, e.addEventListener("keydown", (e) => this.moved(e));
	}
	fill(e, t, n, r) {
		[this.labels, this.first, this.spoken] = [
			e,
			t,
			r
		], this.row.dir = n, this.build(0);
	}
	shade(e, t) {
		[this.shades, this.ramp] = [e, t], e.active !== null && !this.row.matches(":focus-within") && (this.bring(e.active), this.reach(e.active)), this.paint();
	}
	paint() {
		let { shades: e, ramp: t } = this;
		e !== null && t !== null && this.buttons.forEach((n, r) => {
			let i = this.first + this.from + r, a = e.weights?.[i] ?? null, o = n.lastElementChild, s = a === null ? "" : Gt(a);
			o !== null && o.getAttribute("data-share") !== s && o.setAttribute("data-share", s);
			let c = a === null ? null : ra(t, e.dark(a, i)), l = c ? oa(c) : "transparent";
			this.painted[r] !== l && (this.painted[r] = l, n.style.setProperty("background-color", l), n.style.setProperty("color", c ? sa(c) : "")), n.classList.toggle("active", i === e.active), n.classList.toggle("partner", i === e.partner);
			let u = String(i === e.pinned);
			n.ariaPressed !== u && (n.ariaPressed = u);
		});
	}
	build(e) {
		let t = Math.max(this.labels.length - Qa, 0);
		this.from = Math.min(Math.max(e, 0), t), this.painted = [];
		let n = this.labels.slice(this.from, this.from + Qa);
		this.buttons = n.map((e, t) => {
			let r = this.first + this.from + t, i = this.button(e, r, this.spoken(r));
			return i.classList.toggle("continues", n[t + 1]?.begins === !1), i;
		});
		let [r, i] = [this.from, this.labels.length - this.from - n.length], a = (e) => {
			let t = document.createElement("span");
			return t.className = "more", t.textContent = `${e.toLocaleString("en")} more`, e > 0 ? [t] : [];
		};
		this.row.replaceChildren(...a(r), ...this.buttons, ...a(i)), this.reach(this.first + this.from);
	}
	bring(e) {
		let t = e - this.first;
		t < 0 || t >= this.labels.length || t >= this.from && t < this.from + this.buttons.length || this.build(t - Math.floor(Qa / 2));
	}
	button(e, t, n) {
		let r = document.createElement("button");
		r.type = "button", r.className = "token", r.classList.toggle("begins", e.begins), r.classList.toggle("special", e.special), r.setAttribute("aria-label", n);
		let i = document.createElement("bdi");
		i.textContent = e.text;
		let a = document.createElement("span");
		return a.className = "share", a.ariaHidden = "true", r.append(i, a), e.whole !== void 0 && (r.title = e.whole.slice(0, 2e4)), r.addEventListener("pointerenter", () => this.handlers.point(t)), r.addEventListener("focus", () => {
			this.reach(t), this.handlers.point(t);
		}), r.addEventListener("click", () => this.handlers.pin(t)), r;
	}
	reach(e) {
		let t = e - this.first - this.from;
		this.buttons.forEach((e, n) => e.tabIndex = n === t ? 0 : -1);
	}
	moved(e) {
		if (e.ctrlKey || e.altKey || e.metaKey) return;
		let t = this.buttons.findIndex((e) => e.matches(":focus"));
		if (t < 0) return;
		let n = getComputedStyle(this.row).direction === "rtl" ? "ArrowLeft" : "ArrowRight", [r, i] = [t + this.from, this.labels.length - 1], a = {
			ArrowLeft: n === "ArrowLeft" ? r + 1 : r - 1,
			ArrowRight: n === "ArrowRight" ? r + 1 : r - 1,
			Home: 0,
			End: i
		}[e.key];
		if (a === void 0) return;
		e.preventDefault();
		let o = Math.min(Math.max(a, 0), i);
		this.bring(this.first + o), this.paint(), this.buttons[o - this.from]?.focus();
	}
};
// src/words-panel.tsx
function eo({ matrix: e }, { side: t, index: n }) {
	return t === "target" ? Bt(e, n) : Vt(e, n);
}
function to({ rowSpans: e, keySpans: t }, { side: n, index: r, partner: i }) {
	let [a, o] = n === "target" ? [e, t] : [t, e], s = {
		side: n,
		index: ir(a, r)
	};
	return i === void 0 ? s : {
		...s,
		partner: ir(o, i)
	};
}
function no(e, t) {
	return (n, r) => e(n, t.side === "target" ? t.index : r);
}
function ro(e, t) {
	let n = e.findIndex(({ to: e }) => e > t.from), r = e.findIndex(({ from: e }) => e >= t.to);
	return {
		from: Math.max(n, 0),
		to: r < 0 ? e.length : r
	};
}
function io(e) {
	let [t, n] = [e.now.sheet.value, e.now.view.value];
	if (t === null || n === null || e.layer.value?.within !== !0) return !1;
	let r = (e, t) => e.from === t.from && e.to === t.to, { excerpt: i, rows: a, keys: o } = t;
	return !r(i.rows, i.keys) || !r(n.rows, n.keys) ? !1 : a.every((e, t) => e.text === o[t]?.text);
}
function ao() {
	let e = Y(), { now: t } = e, n = t.sheet.value;
	if (n === null) return null;
	let r = io(e), i = Ei(e.kind), a = n.rows.some(({ begins: e }) => !e) || n.keys.some(({ begins: e }) => !e);
	return /* @__PURE__ */ X(k, { children: [
		/* @__PURE__ */ X("div", {
			class: "pane-head",
			children: [/* @__PURE__ */ X("h2", { children: "Words" }), /* @__PURE__ */ X("div", {
				class: "switches",
				children: [r && /* @__PURE__ */ X("fieldset", {
					class: "switch",
					id: "side",
					children: [/* @__PURE__ */ X("legend", {
						class: "unseen",
						children: "A word is shown as"
					}), [["target", "looks at"], ["source", "is looked at"]].map(([n, r]) => /* @__PURE__ */ X("label", { children: [/* @__PURE__ */ X("input", {
						type: "radio",
						name: "side",
						value: n,
						checked: t.side.value === n,
						onChange: () => {
							let { pointed: t, pinned: r } = e.state, i = (e) => e && {
								side: n,
								index: e.index
							};
							e.set({
								side: n,
								pointed: i(t),
								pinned: i(r)
							});
						}
					}), /* @__PURE__ */ X("span", { children: r })] }, n))]
				}), /* @__PURE__ */ X("label", {
					class: "check",
					hidden: !a,
					title: Xn,
					children: [
						/* @__PURE__ */ X("input", {
							id: "joined",
							type: "checkbox",
							checked: t.joined.value,
							onChange: (t) => e.set({ joined: t.currentTarget.checked })
						}),
						" ",
						"whole words"
					]
				})]
			})]
		}),
		n.coarse ? /* @__PURE__ */ X("p", {
			class: "hint empty",
			children: "Words stand here when the map is near enough: click a cell, or choose a part by its numbers."
		}) : /* @__PURE__ */ X("div", {
			class: "texts",
			id: "rows",
			children: [r ? /* @__PURE__ */ X(oo, {
				title: "Text",
				side: null,
				id: "target"
			}) : /* @__PURE__ */ X(k, { children: [/* @__PURE__ */ X(oo, {
				title: i.source,
				side: "source",
				id: "source"
			}), /* @__PURE__ */ X(oo, {
				title: i.target,
				side: "target",
				id: "target"
			})] }), t.joined.value && a && /* @__PURE__ */ X("p", {
				class: "hint",
				children: ["Pieces joined to words: over the pieces of a word that is looked at the weights are summed, over those of a word that looks their mean is taken.", " The map stays token by token."]
			})]
		}),
		/* @__PURE__ */ X("p", {
			class: "caution",
			children: "These numbers say where the model looked, not why it chose a word: a word can matter without being looked at, and be looked at without mattering."
		})
	] });
}
function oo({ title: e, side: t, id: n }) {
	let r = Y(), i = P(null), a = P(null), o = () => t ?? r.state.side;
	N(() => {
		if (i.current === null) return;
		let e = (e) => {
			let t = r.reading.peek(), n = o() === "target" ? t?.rowSpans : t?.keySpans;
			return {
				side: o(),
				index: n?.[e]?.from ?? e
			};
		};
		a.current = new $a(i.current, {
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
		let [s, c] = o === "target" ? [e.rows, e.rowSpans] : [e.keys, e.keySpans], l = (o === "target" ? e.keys : e.rows).map(({ text: e }) => e), u = o === "target" ? "rows" : "keys", d = n.excerpt[u].from, f = i?.[u] ?? n.excerpt[u], { from: p, to: m } = ro(c, {
			from: f.from - d,
			to: f.to - d
		});
		a.current?.fill(s.slice(p, m), p, Gn(s), (t) => Ti({
			side: o,
			index: t
		}, s[t]?.text ?? "", eo(e, {
			side: o,
			index: t
		}), l));
	}, c = () => {
		let { now: e, theme: n } = r;
		n.changes.value;
		let i = r.reading.value, o = r.layer.value, s = e.pinned.value, c = s ?? e.pointed.value, l = t ?? e.side.value;
		if (i === null || o === null) return;
		let u = c && to(i, c), d = t === null ? u !== null : u?.side === t, f = qt(e.scale.value, i.matrix, o.keys);
		a.current?.shade({
			weights: u === null || d && t !== null ? null : eo(i, u),
			dark: u === null ? () => 0 : no(f, u),
			active: d ? u?.index ?? null : null,
			pinned: s !== null && s.side === l ? to(i, s).index : null,
			partner: u === null || d && t !== null ? null : u.partner ?? null
		}, n.ramp);
	};
	return V(s), V(c), /* @__PURE__ */ X(k, { children: [/* @__PURE__ */ X("h3", {
		id: `${n}-title`,
		children: e
	}), /* @__PURE__ */ X("div", {
		id: n,
		class: "tokens",
		ref: i,
		role: "group",
		"aria-labelledby": `${n}-title`,
		dir: "auto"
	})] });
}
// src/distribution-panel.tsx
var so = 3;
function co() {
	let e = Y(), t = P(null), n = P(null), r = P(null), i = P(null), a = P(null), o = P(null), { now: s } = e;
	N(() => {
		t.current !== null && (n.current = new Ya(t.current)), c();
	}, []);
	let c = () => {
		e.theme.changes.value;
		let [t, c, l] = [
			s.sheet.value,
			s.view.value,
			e.layer.value
		], u = e.reading.value, d = s.pinned.value ?? s.pointed.value, [f, p, m] = [
			s.scale.value,
			s.order.value,
			e.kind
		];
		if (u === null || t === null || l === null || d === null || t.coarse) return;
		let h = to(u, d), g = h.side === "target", [_, v, y] = g ? [
			u.rows,
			u.keys,
			u.keySpans
		] : [
			u.keys,
			u.rows,
			u.rowSpans
		], b = _[h.index], x = g ? "keys" : "rows", S = t.excerpt[x].from, ee = c?.[x] ?? t.excerpt[x], { from: C, to: w } = ro(y, {
			from: ee.from - S,
			to: ee.to - S
		}), T = eo(u, h).slice(C, w), E = v.slice(C, w), te = (e, t) => {
			e !== null && ([e.textContent, e.hidden] = [t, t === ""]);
		};
		te(r.current, Fi(h, b?.text ?? "", m)), te(i.current, Ii(h, m, T)), te(o.current, b?.whole === void 0 ? "" : `In full: ${b.whole}`);
		let ne = Wt(T).slice(0, so).filter((e) => (T[e] ?? 0) >= .005).map((e) => `${q(E[e]?.text ?? "")} ${U(T[e] ?? 0)}`);
		te(a.current, ne.length > 0 ? `Most: ${ne.join(", ")}.`.replace(/ %/g, "\xA0%") : "");
		let re = no(qt(f, u.matrix, l.keys), h);
		n.current?.draw(E, T, p, {
			ramp: e.theme.ramp,
			dark: (e, t) => re(e, t + C),
			partner: h.partner === void 0 ? null : h.partner - C
		});
	};
	V(c);
	let l = s.sheet.value?.coarse ?? !0;
	return /* @__PURE__ */ X(k, { children: [/* @__PURE__ */ X("p", {
		class: "hint empty",
		hidden: !l,
		children: "The numbers of a word stand here when the map is near enough to have words."
	}), /* @__PURE__ */ X("section", {
		id: "distribution",
		class: "distribution",
		"aria-labelledby": "distribution-title",
		hidden: l,
		children: [/* @__PURE__ */ X("div", {
			class: "aside",
			children: [
				/* @__PURE__ */ X("h3", {
					id: "distribution-title",
					ref: r
				}),
				/* @__PURE__ */ X("p", {
					id: "distribution-top",
					class: "top-words",
					ref: a
				}),
				/* @__PURE__ */ X("p", {
					id: "distribution-note",
					class: "note",
					ref: i
				}),
				/* @__PURE__ */ X("p", {
					id: "distribution-whole",
					class: "note whole",
					ref: o,
					hidden: !0
				}),
				/* @__PURE__ */ X("fieldset", {
					id: "order",
					class: "switch",
					children: [/* @__PURE__ */ X("legend", {
						class: "unseen",
						children: "Order"
					}), [["sentence", "as in the text"], ["weight", "largest first"]].map(([t, n]) => /* @__PURE__ */ X("label", { children: [/* @__PURE__ */ X("input", {
						type: "radio",
						name: "order",
						value: t,
						checked: s.order.value === t,
						onChange: () => e.set({ order: t })
					}), /* @__PURE__ */ X("span", { children: n })] }, t))]
				})
			]
		}), /* @__PURE__ */ X("ol", {
			id: "bars",
			class: "bars",
			ref: t,
			tabIndex: 0,
			"aria-labelledby": "distribution-title"
		})]
	})] });
}
// src/doubt.ts
function lo(e, t = null) {
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
		erased: l === null ? fo(n, i, _, t, r?.excerpt.keys.from ?? 0) : uo(l, u.source.length)
	};
}
function uo(e, t) {
	return e < t ? {
		from: e,
		to: e + 1
	} : null;
}
function fo(e, t, n, r, i) {
	if (n === null || r === null || e.doubt?.keys[t] !== !0) return null;
	let a = r.find((e) => n - i >= e.from && n - i < e.to);
	return a === void 0 ? null : {
		from: a.from + i,
		to: a.to + i
	};
}
function po(e, { layer: t, head: n, output: r, row: i }) {
	return [
		e,
		t,
		n,
		r,
		i
	].join(" ");
}
function mo(e) {
	if (e == null) return "−∞";
	let t = Math.abs(e), n = t >= 9.995 ? t.toFixed(1) : t.toFixed(2);
	return Number(n) === 0 ? "0.00" : `${e < 0 ? "−" : "+"}${n}`;
}
function ho(e) {
	return Math.abs(e) < .005 && e !== 0 ? e < 0 ? "−0.00" : "+0.00" : mo(e);
}
function go({ name: e }, t, n, { doubt: r }, i) {
	if (e === "permuted") return `permuted, ${t.draws} draws`;
	if (e === "weight") return `“${q(i.key(t.key))}” ${W(t.weights[t.key] ?? 0)} → ${U(n.weight)}`;
	if (e !== "erased") return e === "adversary" ? "other weights" : e;
	let [a, o] = t.erased ?? [0, 0];
	return `without “${q(_o((r?.source.slice(a, o) ?? []).join("")))}”`;
}
function _o(e) {
	return e.replace(/[▁Ġ]/g, " ").trim() || e;
}
function vo({ divergence: e, at_most: t, distance: n, whole: r }) {
	let i = t > 0 ? Math.round(100 * e / t) : 0;
	return `${r ? "All rows of the head" : "This row"} look elsewhere: ${e.toFixed(2)} nats of at most ${t.toFixed(2)} (${i} %, Jensen–Shannon). The output moves by ${W(n)} of probability at the most.`;
}
var yo = 40;
function bo({ weights: e, seen: t, gradient: n }) {
	let r = e.flatMap((e, r) => t[r] === !0 ? [{
		key: r,
		weight: e,
		gradient: n?.[r] ?? null
	}] : []), i = Math.max(...r.map(({ gradient: e }) => Math.abs(e ?? 0)), 1e-12), a = (e) => Math.max(e.weight, Math.abs(e.gradient ?? 0) / i), o = [...r].sort((e, t) => a(t) - a(e)).slice(0, yo);
	return {
		shown: o.sort((e, t) => e.key - t.key),
		left: r.length - o.length
	};
}
// src/doubt-panel.tsx
var xo = 120, So = 60;
function Co() {
	let e = Y(), { now: t, door: n } = e, r = t.answer.value, i = B(null), a = B(null), o = B(null), s = B(""), c = B(!1), l = P(new AbortController()), u = e.reading.value, d = lo({
		answer: r,
		sheet: t.sheet.value,
		layer: t.layer.value,
		head: t.head.value,
		pinned: t.pinned.value,
		output: t.output.value,
		weight: t.weight.value,
		erased: t.erased.value
	}, t.joined.value ? u?.keySpans ?? null : null);
	N(() => {
		if (d === null || r?.map == null || n.doubt === void 0) return;
		let e = new AbortController();
		c.value = !0;
		let t = setTimeout(() => {
			n.doubt?.(r.map ?? "", d, e.signal).then((t) => {
				e.signal.aborted || ([i.value, s.value, c.value] = [
					{
						asked: d,
						effects: t
					},
					"",
					!1
				]);
			}, (t) => {
				e.signal.aborted || ([s.value, c.value] = [H.of(t).message, !1]);
			});
		}, i.peek() === null ? 0 : xo);
		return () => {
			clearTimeout(t), e.abort();
		};
	}, [d === null ? "" : JSON.stringify([r?.map, d])]);
	let f = d === null || r?.map == null ? "" : po(r.map, d);
	if (N(() => () => {
		l.current.abort(), o.value = null;
	}, [f]), d === null || r === null || !r.doubt) return null;
	let p = r.layers[d.layer], m = t.sheet.value, h = (e) => (t) => m === null || m.coarse ? `${t}` : m[e][t - m.excerpt[e].from]?.text ?? `${t}`, g = {
		row: h("rows"),
		key: h("keys")
	}, _ = i.value, v = a.value?.key === f ? a.value.found : null, y = () => {
		l.current = new AbortController();
		let { signal: e } = l.current;
		o.value = f, n.adversary?.(r.map ?? "", d, e).then((t) => {
			e.aborted || ([a.value, o.value] = [{
				key: f,
				found: t
			}, null]);
		}, (t) => {
			e.aborted || ([s.value, o.value] = [H.of(t).message, null]);
		});
	};
	return /* @__PURE__ */ X("div", {
		class: "doubt",
		children: [/* @__PURE__ */ X("div", {
			class: "aside",
			children: [
				/* @__PURE__ */ X("h3", { children: [
					"Does the output need ",
					p === void 0 ? "this head" : Pi(p, d.head),
					"?"
				] }),
				/* @__PURE__ */ X("label", { children: [
					"Output",
					" ",
					/* @__PURE__ */ X(wo, {
						id: "doubted",
						names: r.doubt.outputs,
						value: d.output,
						choose: (t) => e.set({ output: t })
					})
				] }),
				/* @__PURE__ */ X("label", { children: [
					/* @__PURE__ */ X("span", { children: [
						"Weight of “",
						/* @__PURE__ */ X("bdi", { children: g.key(_?.effects.key ?? d.key ?? 0) }),
						"”"
					] }),
					" ",
					/* @__PURE__ */ X("input", {
						id: "edited",
						type: "range",
						min: 0,
						max: 100,
						value: t.weight.value,
						"aria-valuetext": `${t.weight.value} %`,
						onInput: (t) => e.set({ weight: Number(t.currentTarget.value) })
					}),
					" ",
					/* @__PURE__ */ X("span", {
						class: "number",
						children: [t.weight.value, " %"]
					})
				] }),
				/* @__PURE__ */ X("label", { children: [
					"Without",
					" ",
					/* @__PURE__ */ X(wo, {
						id: "erased",
						names: r.doubt.source,
						value: _?.effects.erased?.[0] ?? null,
						choose: (t) => e.set({ erased: t })
					})
				] }),
				/* @__PURE__ */ X("p", {
					class: "note",
					children: "A small change says that this output does not need these weights. It does not say that the head is useless: other heads may stand in for it, and other outputs may need it."
				}),
				/* @__PURE__ */ X("p", {
					class: "problem",
					role: "alert",
					hidden: s.value === "",
					children: s.value
				})
			]
		}), _ === null ? /* @__PURE__ */ X("p", {
			class: "hint empty",
			hidden: s.value !== "",
			children: "Reading the text again…"
		}) : /* @__PURE__ */ X(k, { children: [/* @__PURE__ */ X("div", {
			class: c.value ? "table-room stale" : "table-room",
			tabIndex: 0,
			role: "region",
			"aria-label": "What the output becomes",
			"aria-busy": c.value,
			children: [
				/* @__PURE__ */ X(To, {
					..._,
					names: g,
					other: v
				}),
				/* @__PURE__ */ X("p", {
					class: "note",
					children: [
						"The model reads this text again with other weights in ",
						d.head === null ? "all heads of this layer" : "this head",
						", in all its rows. All else stays, also what was written before this output. ",
						/* @__PURE__ */ X("b", { children: "Uniform" }),
						": each query looks at all its keys alike. ",
						/* @__PURE__ */ X("b", { children: "Permuted" }),
						": each query’s weights are shuffled among its keys; mean ± standard deviation. ",
						/* @__PURE__ */ X("b", { children: "Off" }),
						": the head reads zeros. ",
						/* @__PURE__ */ X("b", { children: "A weight set by hand" }),
						" takes from the rest of its row in proportion, so that the row keeps its sum. ",
						/* @__PURE__ */ X("b", { children: "Without" }),
						": the text is read without these tokens."
					]
				}),
				/* @__PURE__ */ X("p", {
					class: "seek",
					children: o.value === f ? /* @__PURE__ */ X(k, { children: [
						/* @__PURE__ */ X("span", {
							role: "status",
							children: "Searching for other weights of the same output…"
						}),
						" ",
						/* @__PURE__ */ X("button", {
							type: "button",
							onClick: () => {
								l.current.abort(), o.value = null;
							},
							children: "Stop"
						})
					] }) : v === null ? /* @__PURE__ */ X("button", {
						id: "adversary",
						type: "button",
						onClick: y,
						children: "Search for other weights of the same output"
					}) : /* @__PURE__ */ X("span", {
						role: "status",
						children: vo(v)
					})
				})
			]
		}), /* @__PURE__ */ X(Do, {
			..._,
			names: g,
			other: v
		})] })]
	});
}
function wo({ id: e, names: t, value: n, choose: r }) {
	let i = Math.min(Math.max((n ?? 0) - So / 2, 0), Math.max(t.length - So, 0));
	return /* @__PURE__ */ X("select", {
		id: e,
		value: n === null ? "" : String(n),
		onChange: (e) => {
			e.currentTarget.value !== "" && r(Number(e.currentTarget.value));
		},
		children: [n === null && /* @__PURE__ */ X("option", {
			value: "",
			children: "nothing yet"
		}), t.slice(i, i + So).map((e, t) => /* @__PURE__ */ X("option", {
			value: String(i + t),
			children: [
				i + t,
				": ",
				q(_o(e))
			]
		}, i + t))]
	});
}
function To({ asked: e, effects: t, names: n, other: r }) {
	let i = Y().now.answer.value;
	if (i === null) return null;
	let a = [...t.changes, ...r?.changes ?? []];
	return /* @__PURE__ */ X("table", {
		id: "effects",
		children: [
			/* @__PURE__ */ X("caption", { children: [
				"What becomes of the output “",
				/* @__PURE__ */ X("bdi", { children: _o(t.output) }),
				"”"
			] }),
			/* @__PURE__ */ X("thead", { children: /* @__PURE__ */ X("tr", { children: [
				/* @__PURE__ */ X("th", {
					scope: "col",
					children: "change"
				}),
				/* @__PURE__ */ X("th", {
					scope: "col",
					title: "Change of the logarithm of the probability, in nats",
					children: "Δ log p"
				}),
				/* @__PURE__ */ X("th", {
					scope: "col",
					children: "p"
				}),
				/* @__PURE__ */ X("th", {
					scope: "col",
					children: "five most probable"
				})
			] }) }),
			/* @__PURE__ */ X("tbody", { children: [/* @__PURE__ */ X("tr", { children: [
				/* @__PURE__ */ X("th", {
					scope: "row",
					children: "as it is"
				}),
				/* @__PURE__ */ X("td", {}),
				/* @__PURE__ */ X("td", { children: W(t.probability) }),
				/* @__PURE__ */ X(Eo, {
					top: t.top,
					own: t.output
				})
			] }), a.map((r) => /* @__PURE__ */ X("tr", {
				"data-change": r.name,
				children: [/* @__PURE__ */ X("th", {
					scope: "row",
					children: go(r, t, e, i, n)
				}), r.impossible === void 0 ? /* @__PURE__ */ X(k, { children: [
					/* @__PURE__ */ X("td", { children: [mo(r.delta), r.spread != null && /* @__PURE__ */ X("small", { children: [" ± ", r.spread.toFixed(2)] })] }),
					/* @__PURE__ */ X("td", { children: W(r.probability ?? 0) }),
					/* @__PURE__ */ X(Eo, {
						top: r.top ?? [],
						own: t.output
					})
				] }) : /* @__PURE__ */ X("td", {
					colSpan: 3,
					class: "impossible",
					children: r.impossible
				})]
			}, r.name))] })
		]
	});
}
function Eo({ top: e, own: t }) {
	return /* @__PURE__ */ X("td", {
		class: "five",
		children: e.map(([e, n], r) => /* @__PURE__ */ X("span", {
			class: e === t ? "own" : void 0,
			children: [
				/* @__PURE__ */ X("bdi", { children: _o(e) }),
				" ",
				U(n)
			]
		}, r))
	});
}
function Do({ asked: e, effects: t, names: n, other: r }) {
	let { shown: i, left: a } = bo(t), o = Math.max(...i.map(({ gradient: e }) => Math.abs(e ?? 0)), 1e-12);
	return /* @__PURE__ */ X("figure", {
		class: "slopes",
		tabIndex: 0,
		children: [
			/* @__PURE__ */ X("figcaption", { children: [
				"Row of “",
				/* @__PURE__ */ X("bdi", { children: n.row(e.row) }),
				"”: each ",
				/* @__PURE__ */ X("b", { children: "weight" }),
				r !== null && /* @__PURE__ */ X(k, { children: [", the ", /* @__PURE__ */ X("b", { children: "other weight" })] }),
				" and the ",
				/* @__PURE__ */ X("b", { children: "gradient" }),
				" of log p with respect to it"
			] }),
			/* @__PURE__ */ X("ol", {
				id: "slopes",
				children: i.map(({ key: e, weight: i, gradient: a }) => /* @__PURE__ */ X("li", {
					class: e === t.key ? "slope partner" : "slope",
					children: [
						/* @__PURE__ */ X("bdi", {
							class: "word",
							children: n.key(e)
						}),
						/* @__PURE__ */ X("span", {
							class: "track",
							children: [/* @__PURE__ */ X("span", {
								class: "bar",
								style: { width: `${(i * 100).toFixed(2)}%` }
							}), r !== null && /* @__PURE__ */ X("span", {
								class: "bar other",
								style: { width: `${((r.weights[e] ?? 0) * 100).toFixed(2)}%` }
							})]
						}),
						/* @__PURE__ */ X("span", {
							class: "number",
							children: W(i)
						}),
						/* @__PURE__ */ X("span", {
							class: "track middle",
							children: a !== null && /* @__PURE__ */ X("span", {
								class: a < 0 ? "bar down" : "bar up",
								style: { width: `${(Math.abs(a) / o * 50).toFixed(2)}%` }
							})
						}),
						/* @__PURE__ */ X("span", {
							class: "number",
							children: a === null ? "–" : ho(a)
						})
					]
				}, e))
			}),
			/* @__PURE__ */ X("p", {
				class: "note",
				children: [a > 0 && `${a} keys of less weight and gradient are left out. `, "A gradient says what a little more weight would do while the other weights stay. Pin a cell of the map to choose a row and a key."]
			})
		]
	});
}
// src/lines-layout.ts
function Oo(e, t, n) {
	let r = [], i = 0, a = e.map((e) => Math.max(e, t) + n);
	for (let e of a) r.push(i), i += e;
	return {
		starts: r,
		sizes: a,
		total: i
	};
}
function ko({ starts: e, total: t }, n) {
	if (n < 0 || n >= t || e.length === 0) return null;
	let [r, i] = [0, e.length - 1];
	for (; r < i;) {
		let t = r + i + 1 >> 1;
		(e[t] ?? 0) <= n ? r = t : i = t - 1;
	}
	return r;
}
function Ao({ starts: e, sizes: t }, n) {
	return (e[n] ?? 0) + (t[n] ?? 0) / 2;
}
function jo(e, t, n) {
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
var Mo = 4e3, No = 26, Po = 110, Fo = 20, Io = 120, Lo = class {
	theme;
	room;
	handlers;
	shown = null;
	lines = [];
	active = null;
	ends = null;
	canvas = document.createElement("canvas");
	over = document.createElement("canvas");
	spacer = document.createElement("div");
	observer = new ResizeObserver(() => this.redraw());
	constructor(e, t, n) {
		this.theme = e, this.room = t, this.handlers = n, this.spacer.className = "spacer";
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
		let t = jo(e.heads, e.threshold, Mo);
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
		let r = n.getBoundingClientRect(), [i, a] = [e.clientX - r.left, e.clientY - r.top], o = (this.wide ? a / n.clientHeight : i / n.clientWidth) < .5 ? "target" : "source", s = this.place(this.wide ? i + n.scrollLeft : a + n.scrollTop), c = ko(t[o], s - this.shift(o));
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
		let i = Ao(n[e], t) + this.shift(e);
		this.wide ? r.scrollLeft = this.place(i) - r.clientWidth / 2 : r.scrollTop = i - r.clientHeight / 2;
	}
	redraw() {
		let { shown: e, room: t } = this, n = this.canvas.getContext("2d"), [r, i] = [t.clientWidth, t.clientHeight];
		if (e === null || n === null || r === 0 || i === 0) return;
		t.classList.toggle("wide", this.wide);
		let a = Math.max(1, window.devicePixelRatio);
		n.font = `13px ${this.theme.font}`;
		let o = (e) => this.wide ? Math.min(n.measureText(e.text).width, Po) : 0, s = this.wide ? 14 : Fo, c = this.wide ? 8 : 0;
		this.ends = {
			target: Oo(e.rows.map(o), s, c),
			source: Oo(e.keys.map(o), s, c)
		};
		let l = Math.ceil(this.long);
		this.spacer.style.setProperty("width", this.wide ? `${l}px` : "1px"), this.spacer.style.setProperty("height", this.wide ? "1px" : `${l}px`);
		for (let e of [this.canvas, this.over]) [e.width, e.height] = [Math.round(r * a), Math.round(i * a)], e.style.setProperty("width", `${r}px`), e.style.setProperty("height", `${i}px`), e.getContext("2d")?.setTransform(a, 0, 0, a, 0, 0);
		this.stroke(n, this.lines, 1), this.mark();
	}
	at(e, t) {
		let { ends: n, room: r } = this, i = n === null ? 0 : Ao(n[e], t) + this.shift(e);
		return this.wide ? {
			x: this.place(i) - r.scrollLeft,
			y: e === "target" ? No : r.clientHeight - No
		} : {
			x: e === "target" ? this.column : r.clientWidth - this.column,
			y: i - r.scrollTop
		};
	}
	get column() {
		return Math.min(Io, this.room.clientWidth / 3);
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
				if (this.wide ? a < -110 || a > n.clientWidth + Po : o < -20 || o > n.clientHeight + Fo) return;
				e.fillStyle = this.theme.tone(t.special ? "quiet" : "ink"), e.font = `13px ${this.theme.font}`;
				let s = r === "target";
				e.textAlign = this.wide ? "center" : s ? "right" : "left";
				let c = this.wide ? Po : this.column - 14, [l, u] = this.wide ? [a, s ? o - 13 : o + 13] : [a + (s ? -8 : 8), o];
				e.fillText(ga(e, t.text, c), l, u);
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
		this.wide ? r.strokeRect(o - l / 2 + 1, c ? s - No + 3 : s + 3, l - 2, 20) : r.strokeRect(c ? o - this.column + 2 : o + 4, s - Fo / 2, this.column - 6, Fo);
	}
};
// src/lines-panel.tsx
function Ro() {
	let e = Y(), { now: t, theme: n } = e, r = P(null), i = P(null), a = B(0), o = () => {
		let [n, r, i] = [
			t.sheet.value,
			e.reading.value,
			t.view.value
		];
		if (n === null || r === null) return null;
		let a = (e, t) => {
			let r = n.excerpt[e].from, a = i?.[e] ?? n.excerpt[e];
			return ro(t, {
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
	N(() => {
		if (r.current === null) return;
		let t = (t) => {
			let n = e.reading.peek(), { side: r, index: i } = c(t);
			return {
				side: r,
				index: (r === "target" ? n?.rowSpans : n?.keySpans)?.[i]?.from ?? i
			};
		}, o = new Lo(n, r.current, {
			point: (n) => {
				e.point(t(n));
				let i = e.reading.peek();
				if (i === null || !r.current?.matches(":focus")) return;
				let a = c(n), [o, s] = n.side === "target" ? [i.rows, i.keys] : [i.keys, i.rows];
				e.spoken.value = Ti(a, o[a.index]?.text ?? "", eo(i, a), s.map(({ text: e }) => e));
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
				matrix: Lt(i, d, f),
				colour: n.heads[r] ?? ""
			}];
		}), m = [{
			matrix: Lt(a.matrix, d, f),
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
		let [n, r] = [t.pinned.value ?? t.pointed.value, e.reading.value];
		if (n === null || r === null) return i.current?.point(null);
		let { side: a, index: o } = to(r, n);
		i.current?.point(s({
			side: a,
			index: o
		}, -1));
	};
	V(l), V(u);
	let d = t.sheet.value?.coarse ?? !0;
	return /* @__PURE__ */ X(k, { children: [/* @__PURE__ */ X("p", {
		class: "hint empty",
		hidden: !d,
		children: "Lines stand here when the map is near enough to have words."
	}), /* @__PURE__ */ X("div", {
		class: "lines",
		hidden: d,
		children: [/* @__PURE__ */ X("div", {
			class: "aside",
			children: [
				/* @__PURE__ */ X("label", {
					class: "slider",
					children: [
						"Lines from ",
						/* @__PURE__ */ X("output", { children: [t.threshold.value, " %"] }),
						/* @__PURE__ */ X("input", {
							id: "threshold",
							type: "range",
							min: 0,
							max: 100,
							step: 1,
							value: t.threshold.value,
							"aria-label": "Least weight that has a line, in percent",
							onInput: (t) => e.set({ threshold: Number(t.currentTarget.value) })
						})
					]
				}),
				/* @__PURE__ */ X(Ia, {}),
				/* @__PURE__ */ X("p", {
					class: "note",
					hidden: a.value === 0,
					children: [a.value.toLocaleString("en"), " thinner lines are left out."]
				})
			]
		}), /* @__PURE__ */ X("div", {
			id: "lines",
			class: "lines-room",
			ref: r,
			tabIndex: 0,
			role: "application",
			"aria-roledescription": "lines between words",
			"aria-label": "Words that look, words that are looked at, and a line for each weight. Arrow keys move, Enter keeps a word."
		})]
	})] });
}
// src/notes-panel.tsx
var zo = 2e3;
function Bo() {
	let e = Y(), { door: t } = e, n = B(null), r = B(""), i = B(""), a = (t, r = "") => t?.then((t) => {
		[n.value, i.value] = [t, ""], r && (e.spoken.value = r);
	}, (e) => void (i.value = H.of(e).message));
	return N(() => void a(t.notes?.()), []), /* @__PURE__ */ X("div", {
		class: "doubt notes",
		children: [t.addNote && /* @__PURE__ */ X("form", {
			class: "aside",
			onSubmit: (n) => {
				n.preventDefault();
				let o = r.value.trim();
				o !== "" && a(t.addNote?.(o, e.link), "The note is kept.")?.then(() => {
					i.value === "" && (r.value = "");
				});
			},
			children: [
				/* @__PURE__ */ X("label", {
					for: "note",
					children: "A note on what is on screen"
				}),
				/* @__PURE__ */ X("textarea", {
					id: "note",
					rows: 3,
					maxLength: zo,
					value: r.value,
					onInput: (e) => r.value = e.currentTarget.value
				}),
				/* @__PURE__ */ X("button", {
					type: "submit",
					disabled: r.value.trim() === "",
					children: "Keep the note"
				}),
				/* @__PURE__ */ X("p", {
					class: "problem",
					role: "alert",
					hidden: i.value === "",
					children: i.value
				})
			]
		}), /* @__PURE__ */ X("ul", {
			id: "notes",
			tabIndex: 0,
			"aria-label": "Notes",
			children: [n.value?.map(({ id: n, text: r, link: i }) => /* @__PURE__ */ X("li", { children: [
				/* @__PURE__ */ X("p", {
					dir: "auto",
					children: r
				}),
				e.address !== null && /* @__PURE__ */ X("a", {
					href: i,
					children: "Show its view"
				}),
				" ",
				t.removeNote && /* @__PURE__ */ X("button", {
					type: "button",
					onClick: () => void a(t.removeNote?.(n), "The note is removed."),
					children: "Remove"
				})
			] }, n)), n.value?.length === 0 && /* @__PURE__ */ X("li", {
				class: "note",
				children: "No notes yet. A note keeps the view on screen."
			})]
		})]
	});
}
// src/mechanism-panel.tsx
var Vo = 120;
function Ho() {
	let e = Y(), { now: t, door: n } = e, r = B(null), i = B(""), a = B(!1), o = B(null), s = t.answer.value, c = t.sheet.value, l = Xt({
		answer: s,
		sheet: c,
		layer: t.layer.value,
		head: t.head.value,
		pinned: t.pinned.value,
		pointed: t.pointed.value
	});
	N(() => {
		if (l === null || s?.map == null || n.mechanism === void 0) return;
		let [e, t] = [new AbortController(), s.map];
		a.value = !0, o.value = null;
		let c = setTimeout(() => {
			n.mechanism?.(t, l, e.signal).then((t) => {
				e.signal.aborted || ([r.value, i.value, a.value] = [
					{
						asked: l,
						found: t
					},
					"",
					!1
				]);
			}, (t) => {
				e.signal.aborted || ([i.value, a.value] = [H.of(t).message, !1]);
			});
		}, r.peek() === null ? 0 : Vo);
		return () => {
			clearTimeout(c), e.abort();
		};
	}, [l === null ? "" : JSON.stringify([s?.map, l])]);
	let u = e.layer.value;
	if (l === null || u === null || c === null) return /* @__PURE__ */ X("p", {
		class: "hint empty",
		children: c?.coarse === !0 ? "The formula of a row stands here when the map is near enough to have words." : "The mean of all heads has no formula of its own. Choose a head: its formula stands here, with the numbers of a row."
	});
	if (r.value === null) return /* @__PURE__ */ X("p", {
		class: i.value === "" ? "hint empty" : "problem",
		role: i.value === "" ? "status" : "alert",
		children: i.value || "Reading the numbers…"
	});
	let { found: d, asked: f } = r.value, p = (e) => (t) => c[e][t - c.excerpt[e].from]?.text ?? `${t}`;
	if (d.missing) return /* @__PURE__ */ X("p", {
		class: "hint empty",
		children: [
			"There is no formula to show: ",
			d.missing,
			"."
		]
	});
	let [m, h] = [Zt(t.factor.value), !t.unmasked.value], g = $t(d, m, h), _ = {
		...r.value,
		result: g,
		row: p("rows")(f.row),
		keyName: p("keys"),
		factor: m,
		masked: h
	}, v = g.lines.reduce((e, t) => t.weight > e.weight ? t : e, g.lines[0]), y = o.value ?? l.key ?? v.key, b = g.lines.find((e) => e.key === y) ?? v;
	return /* @__PURE__ */ X("div", {
		class: "doubt mechanism",
		children: [
			/* @__PURE__ */ X("div", {
				class: "aside",
				children: [
					/* @__PURE__ */ X("h3", { children: [
						"How “",
						/* @__PURE__ */ X("bdi", { children: _.row }),
						"” looks in ",
						Pi(u, f.head)
					] }),
					/* @__PURE__ */ X(Uo, {
						..._,
						line: b
					}),
					/* @__PURE__ */ X(Wo, { ..._ }),
					/* @__PURE__ */ X("p", {
						class: "problem",
						role: "alert",
						hidden: i.value === "",
						children: i.value
					})
				]
			}),
			/* @__PURE__ */ X("div", {
				class: a.value ? "table-room stale" : "table-room",
				tabIndex: 0,
				role: "region",
				"aria-label": "The numbers of each key",
				"aria-busy": a.value,
				children: /* @__PURE__ */ X(Go, {
					..._,
					line: b,
					point: (e) => o.value = e
				})
			}),
			/* @__PURE__ */ X(Ko, {
				..._,
				line: b
			})
		]
	});
}
function Uo({ found: e, result: t, keyName: n, factor: r, line: i }) {
	let [a] = on(e), { scale: o, softcap: s } = e, c = o * r;
	return /* @__PURE__ */ X("div", {
		class: "formula",
		children: [
			/* @__PURE__ */ X("p", { children: [
				a,
				": ",
				/* @__PURE__ */ X("b", { children: sn(e) }),
				rn(o, e.width) && o !== 1 && `, where ${nn(o)} = 1 / √${e.width}`
			] }),
			/* @__PURE__ */ X("p", { children: [/* @__PURE__ */ X("b", { children: "weight = e^score / Σ e^score" }), " over the keys that it sees"] }),
			/* @__PURE__ */ X("p", {
				id: "worked",
				children: [
					"“",
					/* @__PURE__ */ X("bdi", { children: n(i.key) }),
					"”:",
					" ",
					i.hidden === "" ? /* @__PURE__ */ X(k, { children: [
						c !== 1 && `${nn(c)} × ${G(i.product)} `,
						s !== null && "capped ",
						i.bias !== null && `+ ${G(i.bias)} `,
						(c !== 1 || s !== null || i.bias !== null) && "= ",
						G(i.score),
						"; e^(",
						G(i.score),
						" − ",
						G(t.sum),
						") = ",
						/* @__PURE__ */ X("b", {
							class: "number",
							children: W(i.weight)
						})
					] }) : `hidden (${i.hidden}), so its weight is 0`
				]
			})
		]
	});
}
function Wo({ found: e, result: t, factor: n, masked: r }) {
	let i = Y(), a = i.now.factor.value, o = rn(e.scale, e.width) ? Qt(Math.sqrt(e.width)) : null, s = e.keys.hidden.some((e) => e !== ""), c = a === 40 ? "as in the model" : `× ${nn(n)}`;
	return /* @__PURE__ */ X(k, { children: [
		/* @__PURE__ */ X("label", {
			class: "slider",
			children: [
				"Scores times ",
				/* @__PURE__ */ X("output", { children: c }),
				/* @__PURE__ */ X("input", {
					id: "factor",
					type: "range",
					min: 0,
					max: 80,
					value: a,
					list: "factors",
					"aria-valuetext": c,
					onInput: (e) => i.set({ factor: Number(e.currentTarget.value) })
				}),
				/* @__PURE__ */ X("datalist", {
					id: "factors",
					children: [/* @__PURE__ */ X("option", {
						value: 40,
						label: "as in the model"
					}), o !== null && /* @__PURE__ */ X("option", {
						value: o,
						label: "without 1/√d"
					})]
				})
			]
		}),
		/* @__PURE__ */ X("p", {
			class: "buttons",
			children: [/* @__PURE__ */ X("button", {
				type: "button",
				disabled: a === 40,
				onClick: () => i.set({ factor: 40 }),
				children: "as in the model"
			}), o !== null && o !== 40 && /* @__PURE__ */ X("button", {
				id: "unscaled",
				type: "button",
				disabled: a === o,
				onClick: () => i.set({ factor: o }),
				children: ["without 1/√", e.width]
			})]
		}),
		(s || !r) && /* @__PURE__ */ X("label", {
			class: "check",
			children: [
				/* @__PURE__ */ X("input", {
					id: "unmasked",
					type: "checkbox",
					checked: !r,
					onChange: (e) => i.set({ unmasked: e.currentTarget.checked })
				}),
				" ",
				"ignore what hides keys"
			]
		}),
		/* @__PURE__ */ X("p", {
			id: "entropy",
			role: "status",
			children: [
				"Entropy ",
				/* @__PURE__ */ X("b", { children: t.entropy.toFixed(2) }),
				" of at most ",
				t.most.toFixed(2),
				" nats."
			]
		}),
		/* @__PURE__ */ X("p", {
			class: "note",
			children: ["A larger scale makes the weights sharper.", o !== null && " Products of d random numbers grow with √d; 1/√d keeps them from leaving all weight to one key."]
		})
	] });
}
function Go({ asked: e, found: t, result: n, row: r, keyName: i, factor: a, masked: o, line: s, point: c }) {
	let l = Y(), u = new Set(t.shown), d = n.lines.filter(({ key: e }) => u.has(e)), f = en(t), [, p] = on(t), m = t.scale * a, h = l.now.sheet.value?.excerpt, g = (e) => h !== void 0 && e >= h.keys.from && e < h.keys.to, _ = (t) => {
		h !== void 0 && l.pin({
			side: "target",
			index: e.row - h.rows.from,
			partner: t - h.keys.from
		});
	};
	return /* @__PURE__ */ X(k, { children: [/* @__PURE__ */ X("table", {
		id: "scores",
		children: [
			/* @__PURE__ */ X("caption", { children: [
				"Row of “",
				/* @__PURE__ */ X("bdi", { children: r }),
				"”, key by key"
			] }),
			/* @__PURE__ */ X("thead", { children: /* @__PURE__ */ X("tr", { children: [
				/* @__PURE__ */ X("th", {
					scope: "col",
					children: "key"
				}),
				/* @__PURE__ */ X("th", {
					scope: "col",
					children: p
				}),
				m !== 1 && /* @__PURE__ */ X("th", {
					scope: "col",
					children: ["× ", nn(m)]
				}),
				t.keys.bias !== null && /* @__PURE__ */ X("th", {
					scope: "col",
					children: "+ bias"
				}),
				(t.softcap !== null || t.keys.bias !== null) && /* @__PURE__ */ X("th", {
					scope: "col",
					children: "score"
				}),
				/* @__PURE__ */ X("th", {
					scope: "col",
					class: "wide",
					children: "weight"
				})
			] }) }),
			/* @__PURE__ */ X("tbody", { children: d.map(({ key: n, product: r, bias: a, score: o, weight: l, hidden: u }) => /* @__PURE__ */ X("tr", {
				class: n === s.key ? "partner" : void 0,
				"data-key": n,
				onPointerEnter: () => c(n),
				children: [
					/* @__PURE__ */ X("th", {
						scope: "row",
						children: /* @__PURE__ */ X("button", {
							type: "button",
							class: "link",
							"aria-pressed": e.key === n,
							onFocus: () => c(n),
							onClick: () => g(n) ? _(n) : c(n),
							children: /* @__PURE__ */ X("bdi", { children: i(n) })
						})
					}),
					/* @__PURE__ */ X("td", { children: G(r) }),
					m !== 1 && /* @__PURE__ */ X("td", { children: G(r === null ? null : r * m) }),
					t.keys.bias !== null && /* @__PURE__ */ X("td", { children: G(a) }),
					(t.softcap !== null || t.keys.bias !== null) && /* @__PURE__ */ X("td", { children: G(o) }),
					u === "" ? /* @__PURE__ */ X("td", {
						class: "wide",
						children: [/* @__PURE__ */ X("span", {
							class: "track",
							children: /* @__PURE__ */ X("span", {
								class: "bar",
								style: { width: `${(l * 100).toFixed(2)}%` }
							})
						}), /* @__PURE__ */ X("span", {
							class: "number",
							children: W(l)
						})]
					}) : /* @__PURE__ */ X("td", {
						class: "wide impossible",
						children: ["hidden: ", u]
					})
				]
			}, n)) })
		]
	}), /* @__PURE__ */ X("p", {
		class: "note",
		children: [
			f.seen > 0 && `${f.seen.toLocaleString("en")} keys of less weight are not in the table. `,
			f.hidden > 0 && `${f.hidden.toLocaleString("en")} hidden keys are not in the table. `,
			t.left.seen > 0 && (a !== 1 || !o) && `Of these, ${t.left.seen.toLocaleString("en")} count in the sum at the model’s scale alone. `,
			"Click a key to pin it."
		]
	})] });
}
function Ko({ found: e, row: t, keyName: n, line: r, result: i }) {
	let a = Y(), o = B(null), s = e.shown.indexOf(r.key), c = e.vectors[s], l = e.values?.[s], u = e.energy !== null, [d, f] = u ? ["W q", "U k"] : ["q", e.form === "general" ? "W k" : "k"], p = (e, t) => `${e} of “${q(t)}”`;
	return /* @__PURE__ */ X("figure", {
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
			let l = c === void 0 ? void 0 : tn(e, c)[s];
			a.spoken.value = `number ${s}: ${d} ${G(e.query[s] ?? 0)}, ${f} ${G(c?.[s] ?? null)}, together ${G(l ?? null)}`;
		},
		children: [
			/* @__PURE__ */ X("figcaption", { children: [
				"What the score is made of: ",
				e.width,
				" numbers",
				e.width > e.query.length && `, of which the first ${e.query.length} are shown`
			] }),
			/* @__PURE__ */ X(qo, {
				cell: o,
				title: p(d, t),
				numbers: e.query
			}),
			c !== void 0 && /* @__PURE__ */ X(k, { children: [
				/* @__PURE__ */ X(qo, {
					cell: o,
					title: p(f, n(r.key)),
					numbers: c
				}),
				e.energy !== null && /* @__PURE__ */ X(qo, {
					cell: o,
					title: "v",
					numbers: e.energy
				}),
				/* @__PURE__ */ X(qo, {
					cell: o,
					title: `${u ? "v × tanh(W q + U k)" : `${d} × ${f}`}: together ${G(r.product)}`,
					numbers: tn(e, c)
				})
			] }),
			l !== void 0 && /* @__PURE__ */ X(qo, {
				cell: o,
				title: p("value", n(r.key)),
				numbers: l
			}),
			e.context === null ? /* @__PURE__ */ X("p", {
				class: "note",
				children: [
					"Values and context are not known: ",
					e.no_values,
					"."
				]
			}) : /* @__PURE__ */ X(qo, {
				cell: o,
				title: "context: the sum of weight × value over all keys, as in the model",
				numbers: e.context
			}),
			/* @__PURE__ */ X("p", {
				class: "note",
				children: ["Each strip has a scale of its own: blue is below 0, orange above. Point at a cell, or use the arrow keys, for its number.", i.lines.some(({ bias: e }) => e !== null) && " A bias is added to the score, whatever q and k are."]
			})
		]
	});
}
function qo({ title: e, numbers: t, cell: n }) {
	let { theme: r } = Y(), i = P(null), a = t.reduce((e, t) => Math.max(e, Math.abs(t ?? 0)), 0), o = r.changes.value;
	N(() => {
		let e = () => {
			let [e, n] = [i.current, i.current?.getContext("2d")];
			if (e === null || !n) return;
			let [o, s] = [e.parentElement?.clientWidth ?? 0, 18];
			if (o === 0) return;
			va(e, o, s);
			let c = o / t.length;
			t.forEach((e, t) => {
				n.fillStyle = oa(ra(r.differences, .5 + (a === 0 ? 0 : (e ?? 0) / (2 * a)))), n.fillRect(t * c, 0, c > 6 ? c - 1 : c + .5, s);
			});
		};
		e();
		let n = new ResizeObserver(e);
		return i.current?.parentElement && n.observe(i.current.parentElement), () => n.disconnect();
	}, [t, o]);
	let s = n.value === null ? void 0 : t[n.value];
	return /* @__PURE__ */ X("div", {
		class: "strip",
		children: [/* @__PURE__ */ X("span", { children: [
			e,
			" ",
			/* @__PURE__ */ X("small", { children: s === void 0 ? `±${G(a)}` : `${n.value}: ${G(s)}` })
		] }), /* @__PURE__ */ X("div", { children: /* @__PURE__ */ X("canvas", {
			ref: i,
			role: "img",
			"aria-label": `${e}; ${t.slice(0, 8).map((e) => G(e)).join(", ")}${t.length > 8 ? " …" : ""}`,
			onPointerMove: (e) => {
				let r = e.currentTarget.getBoundingClientRect();
				n.value = Math.min(Math.floor((e.clientX - r.left) / r.width * t.length), t.length - 1);
			},
			onPointerLeave: () => n.value = null
		}) })]
	});
}
// src/statistics-panel.tsx
var Jo = [
	"normalized_entropy",
	"max_weight",
	"first_weight",
	"last_weight",
	"self_weight",
	"previous_weight",
	"next_weight",
	"distance"
], Yo = 32, Xo = /* @__PURE__ */ new WeakMap();
function Zo() {
	let e = Y(), { now: t } = e, [n, r, i, a] = [
		t.sheet.value,
		e.layer.value,
		t.answer.value,
		t.overview.value
	], o = e.weights.value;
	if (n === null || r === null || i === null || a === null || o === null) return null;
	let s = t.apart.value && !n.coarse, c = n.head ?? t.head.value, l = r.within ? n.excerpt.rows.from - n.excerpt.keys.from : null, u = new Set(n.keys.flatMap((e, t) => Qo(e) ? [t] : [])), d = (e) => /* @__PURE__ */ new Set([...u, ...Ra(e)]), f = (e) => {
		let t = Xo.get(e) ?? /* @__PURE__ */ new Map();
		Xo.set(e, t);
		let n = `${l} ${s}`, r = t.get(n) ?? za(e, l, s ? d(e) : void 0);
		return t.set(n, r), r;
	}, p = f(o), m = c === null ? "The mean of all heads" : `Head ${c}`, h = Math.min(Math.max((c ?? 0) - Yo / 2, 0), Math.max(r.heads - Yo, 0)), g = Array.from({ length: Math.min(r.heads, Yo) }, (e, t) => h + t), _ = a.statistics.layers[n.layer], v = (t, r) => {
		if (!s) return _?.[r]?.[t] ?? NaN;
		let i = n.head === null ? Qr(n, t) : e.neighbour(t), a = t === c ? o : i;
		return a === null ? NaN : f(a)[r];
	}, y = Jo.filter((e) => g.some((t) => Number.isFinite(v(t, e)))), b = s ? [...d(o)].map((e) => n.keys[e]?.text ?? String(e)) : [];
	return /* @__PURE__ */ X("div", {
		class: "statistics",
		children: [
			/* @__PURE__ */ X("div", {
				class: "aside",
				children: [
					/* @__PURE__ */ X("h3", { children: Pi(r, c) }),
					/* @__PURE__ */ X("div", {
						id: "interpretation",
						children: n.coarse ? /* @__PURE__ */ X("p", { children: "The map is too long to be read here as a whole; the table has the numbers of all of it." }) : Ha(p, m, s).map((e) => /* @__PURE__ */ X("p", { children: e }, e))
					}),
					/* @__PURE__ */ X("label", {
						class: "check",
						children: [
							/* @__PURE__ */ X("input", {
								id: "apart",
								type: "checkbox",
								checked: t.apart.value,
								disabled: n.coarse,
								onChange: (t) => e.set({ apart: t.currentTarget.checked })
							}),
							" ",
							"set sinks and special tokens aside"
						]
					}),
					s && /* @__PURE__ */ X("p", {
						class: "note",
						children: [b.length > 0 ? `Left out: ${b.slice(0, 8).join(", ")}. ` : "There is none here. ", "A sink is a key that gets a quarter of all attention or more. What remains of each row is divided by its sum."]
					}),
					/* @__PURE__ */ X("p", {
						class: "note",
						children: "Numbers say how attention is spread. They do not say what the model needs."
					})
				]
			}),
			/* @__PURE__ */ X("div", {
				class: "table-room",
				tabIndex: 0,
				role: "region",
				"aria-label": "Numbers of each head",
				children: [/* @__PURE__ */ X("table", { children: [/* @__PURE__ */ X("thead", { children: /* @__PURE__ */ X("tr", { children: [/* @__PURE__ */ X("th", {
					scope: "col",
					children: "head"
				}), y.map((e) => /* @__PURE__ */ X("th", {
					scope: "col",
					title: Ai(e),
					children: Mi(e)
				}, e))] }) }), /* @__PURE__ */ X("tbody", { children: g.map((t) => /* @__PURE__ */ X("tr", {
					class: t === c ? "shown" : void 0,
					children: [/* @__PURE__ */ X("th", {
						scope: "row",
						children: /* @__PURE__ */ X("button", {
							type: "button",
							class: "link",
							"aria-label": `Show head ${t}`,
							"aria-current": t === c,
							onClick: () => e.see(n.layer, t),
							children: t
						})
					}), y.map((e) => {
						let n = v(t, e);
						return /* @__PURE__ */ X("td", { children: Number.isFinite(n) ? Ni(e, n) : "–" }, e);
					})]
				}, t)) })] }), r.heads > Yo && /* @__PURE__ */ X("p", {
					class: "note",
					children: [
						Yo,
						" of ",
						r.heads,
						" heads, those around the one that is shown."
					]
				})]
			}),
			!n.coarse && /* @__PURE__ */ X($o, {
				matrix: o,
				apart: s ? d(o) : /* @__PURE__ */ new Set()
			})
		]
	});
}
function Qo({ special: e, text: t }) {
	return e || /^(\[(CLS|SEP|PAD|MASK|UNK)\]|<\|.*\|>|<(bos|eos|cls|sep|mask)>)$/.test(t);
}
function $o({ matrix: e, apart: t }) {
	let n = Y(), r = P(null), i = n.now.sheet.value, { entropy: a, received: o } = Ba(e, t), s = a.length || 1, c = [...o.keys()].sort((e, t) => (o[t] ?? 0) - (o[e] ?? 0)).slice(0, 3).map((e) => `${i?.keys[e]?.text ?? e} ${U((o[e] ?? 0) / s)}`), l = n.theme.changes.value;
	return N(() => {
		let e = () => es(r.current, n.theme, o, a);
		e();
		let t = new ResizeObserver(e);
		return r.current !== null && t.observe(r.current), () => t.disconnect();
	}, [
		e,
		t.size,
		l
	]), /* @__PURE__ */ X("figure", {
		class: "places",
		children: [
			/* @__PURE__ */ X("figcaption", { children: [
				/* @__PURE__ */ X("b", { children: "Attention received" }),
				" by each key, and ",
				/* @__PURE__ */ X("b", { children: "entropy" }),
				" of each query, along the text"
			] }),
			/* @__PURE__ */ X("canvas", {
				ref: r,
				role: "img",
				"aria-label": `Attention received by each key; most: ${c.join(", ")}`
			}),
			/* @__PURE__ */ X("p", {
				class: "note",
				children: [
					"Most received: ",
					c.join(", "),
					"."
				]
			})
		]
	});
}
function es(e, t, n, r) {
	let i = e?.getContext("2d");
	if (e === null || !i) return;
	let a = Math.max(1, window.devicePixelRatio), [o, s] = [Math.max(e.clientWidth, 120), Math.max(e.clientHeight, 80)];
	[e.width, e.height] = [Math.round(o * a), Math.round(s * a)], i.setTransform(a, 0, 0, a, 0, 0);
	let c = s / 2, l = n.reduce((e, t) => Math.max(e, t), 1e-9), u = (e, t, n, r, a) => {
		let s = o / Math.max(e.length, 1);
		i.fillStyle = a, e.forEach((e, a) => {
			let o = e / t * (c - 6), l = +(s > 4);
			i.fillRect(a * s, r > 0 ? n : n - o, Math.max(s - l, .5), Math.max(o, .5));
		});
	};
	u(n, l, c - 2, -1, t.tone("action")), u(r, 1, c + 2, 1, t.tone("quiet"));
}
// src/inspector.tsx
function Q(e, t, n, r = () => !0) {
	return {
		id: e,
		title: t,
		accepts: r,
		mount(e, t) {
			return Te(/* @__PURE__ */ X(yi, {
				value: t,
				children: /* @__PURE__ */ X(n, {})
			}), e), {
				update: () => void 0,
				unmount: () => Te(null, e)
			};
		}
	};
}
var ts = [
	Q("distribution", "Distribution", co),
	Q("lines", "Lines", Ro),
	Q("mechanism", "Mechanism", Ho, (e) => e.mechanism !== void 0),
	Q("statistics", "Statistics", Zo),
	Q("compare", "Compare", Ua),
	Q("doubt", "Doubt", Co, (e, t) => e.doubt !== void 0 && t?.doubt != null),
	Q("beams", "Beams", ja, (e, t) => e.beams !== void 0 && t?.beams === !0),
	Q("notes", "Notes", Bo, (e, t, n) => e.notes !== void 0 && n?.notes === !0)
];
function ns() {
	let e = Y(), t = P(null), n = P(null), r = B(!1), i = ts.filter((t) => t.accepts(e.door, e.now.answer.value, e.now.model.value)), a = i.find(({ id: t }) => t === e.now.tab.value) ?? i[0];
	N(() => {
		if (t.current !== null && a !== void 0) return n.current = {
			id: a.id,
			panel: a.mount(t.current, e)
		}, () => {
			n.current?.panel.unmount(), n.current = null;
		};
	}, [a?.id]), V(() => n.current?.panel.update(e.whole.value)), N(() => {
		let e = t.current?.parentElement?.querySelector(".tabs"), n = e?.querySelector("[aria-selected=true]");
		e && n && (e.scrollLeft = n.offsetLeft + n.offsetWidth - e.offsetLeft - e.clientWidth), r.value && (t.current?.parentElement?.querySelector("[aria-selected=true]"))?.focus();
	}, [a?.id]);
	let o = (t, n) => {
		r.value = n, t !== void 0 && e.set({ tab: t === i[0]?.id ? null : t });
	};
	return /* @__PURE__ */ X(k, { children: [/* @__PURE__ */ X("div", {
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
		},
		children: i.map(({ id: e, title: t }) => /* @__PURE__ */ X("button", {
			id: `tab-${e}`,
			type: "button",
			role: "tab",
			"aria-selected": e === a?.id,
			"aria-controls": "inspected",
			tabIndex: e === a?.id ? 0 : -1,
			onClick: () => o(e, !1),
			children: t
		}, e))
	}), /* @__PURE__ */ X("div", {
		id: "inspected",
		class: "inspected",
		ref: t,
		role: "tabpanel",
		"aria-labelledby": `tab-${a?.id}`
	})] });
}
// src/csv.ts
function rs(e, t) {
	return `attlas-${e.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 80) || "map"}.${t}`;
}
function is(e, t, n, r, i) {
	let a = ["row,row_token,key,key_token,weight"], o = (e) => as(e?.whole ?? e?.text ?? "");
	for (let s = r.rows.from; s < r.rows.to; s++) for (let c = r.keys.from; c < r.keys.to; c++) {
		if (zt(e, s, c)) continue;
		let r = e.values[s * e.columns + c] ?? 0;
		a.push(`${i.row + s},${o(t[s])},${i.key + c},${o(n[c])},${Number(r.toPrecision(6))}`);
	}
	return `${a.join("\r\n")}\r\n`;
}
function as(e) {
	return /[",\r\n]|^\s|\s$/.test(e) ? `"${e.replace(/"/g, "\"\"")}"` : e;
}
// src/export.ts
var os = 16, ss = 28, cs = 56, ls = 288, us = 2;
function ds(e) {
	let [t, n] = [e.layer.peek(), e.map?.view ?? null], r = e.state.sheet?.head ?? e.state.head;
	return t === null || n === null ? "" : `${Pi(t, r)}, ${ki(n)}`;
}
function fs(e, t, { width: n, height: r }) {
	let { map: i, theme: a } = e, o = e.weights.peek();
	if (i === null || o === null) return;
	let { scale: s } = e.state;
	t.fillStyle = a.tone("paper"), t.fillRect(0, 0, n, r), t.fillStyle = a.tone("ink"), t.font = `600 13px ${a.font}`, t.textAlign = "left", t.textBaseline = "middle", t.fillText(ds(e), os, 22), t.save(), t.translate(os, 44), i.export(t), t.restore();
	let c = r - os - cs + 22;
	t.fillStyle = a.tone("quiet"), t.font = `12px ${a.font}`, t.textAlign = "left", t.textBaseline = "middle", t.fillText(`Colours: ${Kt.find(([e]) => e === s)?.[1] ?? s}`, os, c - 10), _a(t, a.ramp, Yt(s, Ht(o)), {
		x: os,
		y: c,
		width: Math.min(ls, n - 32)
	}, a.tone("quiet"), a.font);
}
function ps(e) {
	let t = e.map?.size ?? null;
	return t && {
		width: Math.max(Math.ceil(t.width), ls) + 32,
		height: Math.ceil(t.height) + ss + cs + 32
	};
}
function ms(e) {
	let t = ps(e);
	if (t === null) return null;
	let n = new Yi();
	return fs(e, n, t), n.file(t.width, t.height, ds(e));
}
async function hs(e) {
	let t = ps(e), n = document.createElement("canvas"), r = n.getContext("2d");
	return t === null || r === null ? null : ([n.width, n.height] = [t.width * us, t.height * us], r.scale(us, us), fs(e, r, t), new Promise((e) => n.toBlob(e, "image/png")));
}
function gs(e) {
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
	return is(r, t.rows, t.keys, c, l);
}
function _s(e, t) {
	let n = document.createElement("a");
	n.href = URL.createObjectURL(e), n.download = t, n.click(), setTimeout(() => URL.revokeObjectURL(n.href), 1e4);
}
// src/export-menu.tsx
function vs() {
	let e = Y(), t = P(null), n = () => {
		t.current?.open === !0 && (t.current.open = !1, t.current.querySelector("summary")?.focus());
	}, r = async (t) => {
		n();
		let r = rs(ds(e), t), i = {
			svg: () => ms(e),
			csv: () => gs(e),
			png: () => null
		}[t](), a = {
			svg: "image/svg+xml",
			csv: "text/csv;charset=utf-8",
			png: "image/png"
		}[t], o = t === "png" ? await hs(e) : i === null ? null : new Blob([i], { type: a });
		if (o === null) {
			let t = new H("a map on screen", "none", "show a head first");
			return e.set({ problem: t });
		}
		_s(o, r), e.spoken.value = `Saved as ${r}`;
	}, i = async () => {
		n();
		let t = new URL(e.link, location.href).href;
		try {
			await navigator.clipboard.writeText(t), e.notice.value = "The link is copied.";
		} catch {
			e.notice.value = `Copy this link: ${t}`;
		}
	};
	return /* @__PURE__ */ X("details", {
		class: "menu",
		ref: t,
		onKeyDown: (e) => {
			e.key === "Escape" && (e.stopPropagation(), n());
		},
		onFocusOut: (e) => {
			let n = e.relatedTarget;
			n instanceof Node && t.current?.contains(n) === !1 && (t.current.open = !1);
		},
		children: [/* @__PURE__ */ X("summary", { children: "Export" }), /* @__PURE__ */ X("div", {
			class: "menu-items",
			children: [
				/* @__PURE__ */ X("button", {
					id: "export-png",
					type: "button",
					onClick: () => void r("png"),
					children: "PNG of the map"
				}),
				/* @__PURE__ */ X("button", {
					id: "export-svg",
					type: "button",
					onClick: () => void r("svg"),
					children: "SVG of the map"
				}),
				/* @__PURE__ */ X("button", {
					id: "export-csv",
					type: "button",
					onClick: () => void r("csv"),
					children: "CSV of its numbers"
				}),
				e.address !== null && /* @__PURE__ */ X("button", {
					id: "copy-link",
					type: "button",
					onClick: () => void i(),
					children: "Copy the link"
				})
			]
		})]
	});
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
// src/map-view.ts
var Os = 13, ks = 112, As = 11, js = 28, Ms = 8, Ns = 120, Ps = 16, Fs = 84, Is = class {
	theme;
	canvas;
	room;
	handlers;
	picture = null;
	shown = null;
	plan = null;
	bitmaps = /* @__PURE__ */ new Map();
	pointers = /* @__PURE__ */ new Map();
	frame = null;
	travelled = 0;
	settling;
	marks = document.createElement("canvas");
	mini = document.createElement("canvas");
	constructor(e, t, n, r) {
		this.theme = e, this.canvas = t, this.room = n, this.handlers = r, this.marks.className = "marks", this.marks.ariaHidden = "true", t.after(this.marks), this.mini.className = "minimap", this.mini.ariaHidden = "true", this.mini.hidden = !0, n.append(this.mini);
		for (let e of ["pointerdown", "pointermove"]) this.mini.addEventListener(e, (e) => this.jump(e));
		t.addEventListener("pointermove", (e) => this.moved(e)), t.addEventListener("pointerdown", (e) => this.pressed(e)), t.addEventListener("pointerup", (e) => this.released(e)), t.addEventListener("pointercancel", (e) => this.pointers.delete(e.pointerId)), t.addEventListener("pointerleave", () => r.leave()), t.addEventListener("wheel", (e) => this.wheeled(e), { passive: !1 }), t.addEventListener("keydown", (e) => this.typed(e)), new ResizeObserver(() => this.redraw()).observe(n);
	}
	draw(e) {
		let t = this.picture;
		this.picture = e;
		let n = (...n) => n.every((n) => e[n] === t?.[n]);
		e.near.shade === t?.near.shade && e.far?.shade === t.far?.shade && n("ramp") || this.bitmaps.clear(), this.shown !== null && n("layer") && Hs(Ts(this.shown), e.view) || (this.shown = e.view), n("layer", "view", "far", "near", "rows", "columns", "ramp") && this.plan !== null ? this.mark() : this.redraw();
	}
	get rightToLeft() {
		return this.picture?.rightToLeft ?? !1;
	}
	cellAt(e, t) {
		let { picture: n, plan: r, shown: i } = this;
		if (n === null || r === null || i === null) return null;
		let [a, o] = [e - r.left, t - r.top];
		if (a < 0 || o < 0 || a >= r.width || o >= r.height) return null;
		let s = this.rightToLeft ? r.width - a : a, { excerpt: c, matrix: l } = n.near, u = zs(c.rows, l.rows, Es(i.rows, o, r.height)), d = zs(c.keys, l.columns, Es(i.keys, s, r.width));
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
		i !== null && (Rs(n.near) ? this.handlers.click(i) : this.zoom(r, Ms));
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
		let { layer: i } = n, a = Hs(Ts(r), e(i));
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
		this.shown = e, this.redraw(), clearTimeout(this.settling), this.settling = setTimeout(() => this.handlers.view(Ts(e)), Ns);
	}
	redraw() {
		let { picture: t, shown: n } = this, r = {
			width: this.room.clientWidth,
			height: this.room.clientHeight
		}, i = this.canvas.getContext("2d");
		if (t === null || n === null || i === null || r.width === 0 || r.height === 0) return;
		i.font = `600 ${Os}px ${this.theme.font}`;
		let a = Ls(i, t, r, n);
		this.plan = a;
		let [o, s] = [a.left + a.width + Ps, a.top + a.height + 4];
		for (let e of [this.canvas, this.marks]) va(e, o, s);
		let c = Hs(Ts(n), e(t.layer));
		this.canvas.style.setProperty("touch-action", c ? "pan-x pan-y" : "none"), i.clearRect(0, 0, o, s), this.render(i, t, a, n), this.drawMinimap(), this.mark();
	}
	render(e, t, n, r) {
		let i = this.theme.font;
		e.save(), e.beginPath(), e.rect(n.left, n.top, n.width, n.height), e.clip();
		for (let i of [t.far, t.near]) i !== null && this.paint(e, t, i, n, r);
		this.write(e, t, n, r, i), e.restore(), this.name(e, t, n, r, i);
	}
	get size() {
		let { plan: e } = this;
		return e && {
			width: e.left + e.width + Ps,
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
		e.save(), e.translate(r.left, r.top), this.rightToLeft && (e.translate(r.width, 0), e.scale(-1, 1)), e.clearRect(s, c, l, u), e.fillStyle = ha(e, this.theme.tone("line")) ?? this.theme.tone("line"), e.fillRect(s, c, l, u), e.imageSmoothingEnabled = !1;
		let d = this.bitmaps.get(n.matrix) ?? ma(n, t.ramp);
		this.bitmaps.set(n.matrix, d), d.width > 0 && d.height > 0 && e.drawImage(d, s, c, l, u), e.restore();
	}
	write(e, t, n, r, i) {
		let a = n.width / (r.keys.to - r.keys.from), o = n.height / (r.rows.to - r.rows.from), { matrix: s, excerpt: c } = t.near;
		if (Math.min(a, o) < 8 || !Rs(t.near)) return;
		e.fillStyle = this.theme.tone("paper");
		let [l, u] = [Bs(c.rows, r.rows), Bs(c.keys, r.keys)];
		for (let t = l.from; t <= l.to; t++) e.fillRect(n.left, n.top + $(r.rows, t, n.height) - .5, n.width, 1);
		for (let t = u.from; t <= u.to; t++) e.fillRect(this.x(t, n, r) - .5, n.top, 1, n.height);
		if (!(Math.min(a, o) < js)) {
			e.font = `11px ${i}`, e.textAlign = "center", e.textBaseline = "middle";
			for (let i = l.from; i < l.to; i++) for (let a = u.from; a < u.to; a++) {
				let [o, l] = [i - c.rows.from, a - c.keys.from];
				if (zt(s, o, l)) continue;
				let u = Rt(s, o, l);
				e.fillStyle = sa(ra(t.ramp, t.near.shade(u, o)));
				let d = n.top + $(r.rows, i + .5, n.height);
				e.fillText(Gt(u), this.x(a + .5, n, r), d);
			}
		}
	}
	name(e, t, n, r, i) {
		e.textBaseline = "middle";
		let a = Math.min(n.height / (r.rows.to - r.rows.from), n.width / (r.keys.to - r.keys.from)), o = n.named.rows || n.named.keys ? Math.min(Os, Math.max(a, As)) : Os, s = (t) => {
			e.font = `${o}px ${i}`, e.fillStyle = this.theme.tone("quiet"), e.fillText(ga(e, t, ks), 0, 0);
		}, c = (e, t, n, r) => (r ? Vs(Bs({
			from: 0,
			to: Infinity
		}, e)) : Ds(e, t, n)).map((e) => [e, r]);
		for (let [i, a] of c(r.rows, n.height, 24, n.named.rows)) {
			let o = t.rows[i - t.near.excerpt.rows.from]?.text;
			if (a && o === void 0) continue;
			let c = n.top + $(r.rows, i + .5, n.height);
			c < n.top || c > n.top + n.height || (e.save(), e.textAlign = "right", e.translate(n.left - 8, c), s(a ? o ?? "" : i.toLocaleString("en")), e.restore());
		}
		for (let [i, a] of c(r.keys, n.width, 56, n.named.keys)) {
			let o = t.columns[i - t.near.excerpt.keys.from]?.text;
			if (a && o === void 0) continue;
			let c = this.x(i + .5, n, r);
			c < n.left || c > n.left + n.width || (e.save(), e.textAlign = a ? "left" : "center", e.translate(c, n.top - (a ? 8 : 12)), a && e.rotate(-Math.PI / 2), s(a ? o ?? "" : i.toLocaleString("en")), e.restore());
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
		let { picture: e, plan: t, shown: n } = this, r = this.marks.getContext("2d");
		e !== null && t !== null && n !== null && r !== null && (r.clearRect(0, 0, t.left + t.width + Ps, t.top + t.height + 4), this.drawMarks(r, e, t, n));
	}
	drawMinimap() {
		let { picture: t, shown: n, mini: r } = this;
		r.hidden = !(t !== null && n !== null && !Hs(Ts(n), e(t.layer))) || t.far === null;
		let i = r.getContext("2d");
		if (t === null || n === null || t.far === null || r.hidden || i === null) return;
		let { layer: a } = t, o = Fs / Math.max(a.queries, a.keys), [s, c] = [Math.max(a.keys * o, 16), Math.max(a.queries * o, 16)];
		va(r, s, c), this.rightToLeft && (i.translate(s, 0), i.scale(-1, 1));
		let l = this.bitmaps.get(t.far.matrix) ?? ma(t.far, t.ramp);
		this.bitmaps.set(t.far.matrix, l), l.width > 0 && l.height > 0 && i.drawImage(l, 0, 0, s, c);
		let u = (e, t, n) => [e.from / t * n, Math.max((e.to - e.from) / t * n, 4)], [d, f] = u(n.rows, a.queries, c), [p, m] = u(n.keys, a.keys, s);
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
		if (e.strokeStyle = this.theme.tone("accent"), e.lineWidth = 2, this.frame !== null) {
			let { from: t, to: n } = this.frame;
			e.setLineDash([6, 4]), e.strokeRect(Math.min(t.x, n.x), Math.min(t.y, n.y), Math.abs(n.x - t.x), Math.abs(n.y - t.y)), e.setLineDash([]);
		}
		let { active: a } = t;
		if (a === null) return;
		let { excerpt: o, matrix: s } = t.near, { rows: c, keys: l } = o, [u, d] = a.side === "target" ? [a.index, a.partner] : [a.partner, a.index];
		e.save(), e.beginPath(), e.rect(n.left - 1, n.top - 1, n.width + 2, n.height + 2), e.clip();
		let f = (e, t) => {
			let { from: n, to: r } = i(e, t, e === c ? s.rows : s.columns);
			return [n, r];
		}, p = (e, t, i) => {
			if (e === void 0) return null;
			let [a, o] = f(t, e);
			if (!i) return [$(r.rows, a, n.height) + n.top, $(r.rows, o, n.height) + n.top];
			let s = [this.x(a, n, r), this.x(o, n, r)];
			return [Math.min(...s), Math.max(...s)];
		}, [m, h] = [p(u, c, !1), p(d, l, !0)];
		m !== null && e.strokeRect(n.left, m[0], n.width, Math.max(m[1] - m[0], 1)), h !== null && e.strokeRect(h[0], n.top, Math.max(h[1] - h[0], 1), n.height), m !== null && h !== null && (e.lineWidth = 3, e.strokeRect(h[0], m[0], Math.max(h[1] - h[0], 1), Math.max(m[1] - m[0], 1))), e.restore();
	}
};
function Ls(e, t, n, r) {
	let i = Rs(t.near), a = (t) => t.reduce((t, { text: n }) => Math.max(t, Math.min(e.measureText(n).width, ks)), 0), o = e.measureText(t.layer.queries.toLocaleString("en")).width, s = (e, r) => {
		let i = Math.ceil(Math.max(e ? a(t.rows) : 0, o) + 12), s = Math.ceil((r ? a(t.columns) : Os) + 14), c = Math.max(n.width - i - Ps, 40);
		return {
			left: i,
			top: s,
			...xs(t.layer, {
				width: c,
				height: Math.max(n.height - s - 4, 40)
			})
		};
	}, c = s(i, i), l = {
		rows: i && c.height / (r.rows.to - r.rows.from) >= As,
		keys: i && c.width / (r.keys.to - r.keys.from) >= As
	};
	return {
		...s(l.rows, l.keys),
		named: l
	};
}
function Rs({ matrix: e, excerpt: t }) {
	let { rows: n, keys: r } = t;
	return n.to - n.from === e.rows && r.to - r.from === e.columns;
}
function zs(e, t, n) {
	if (n < e.from || n >= e.to) return null;
	let r = e.to - e.from;
	return Math.floor(((n - e.from + 1) * t - 1) / r);
}
function Bs(e, t) {
	return {
		from: Math.max(e.from, Math.floor(t.from)),
		to: Math.min(e.to, Math.ceil(t.to))
	};
}
function Vs({ from: e, to: t }) {
	return Array.from({ length: Math.max(t - e, 0) }, (t, n) => e + n);
}
function Hs(e, t) {
	let n = (e, t) => e.from === t.from && e.to === t.to;
	return n(e.rows, t.rows) && n(e.keys, t.keys);
}
function Us(e, t) {
	return t.partner === void 0 ? null : t.side === "target" ? Rt(e, t.index, t.partner) : Rt(e, t.partner, t.index);
}
// src/map-panel.tsx
function Ws() {
	let e = Y(), { now: t } = e, n = t.sheet.value, r = e.layer.value, i = e.weights.value, a = t.view.value, o = B(!1);
	if (n === null || r === null || i === null || a === null) return null;
	let s = e.kind;
	return /* @__PURE__ */ X(k, { children: [
		/* @__PURE__ */ X("div", {
			class: "pane-head",
			children: [/* @__PURE__ */ X(Gs, {
				part: a,
				editing: o.value,
				edit: () => o.value = !o.value
			}), /* @__PURE__ */ X("div", {
				class: "tools",
				children: [
					/* @__PURE__ */ X("button", {
						type: "button",
						title: "Closer (+)",
						"aria-label": "Closer",
						onClick: () => e.map?.closer(2),
						children: "+"
					}),
					/* @__PURE__ */ X("button", {
						type: "button",
						title: "Farther (−)",
						"aria-label": "Farther",
						onClick: () => e.map?.closer(.5),
						children: "−"
					}),
					/* @__PURE__ */ X(vs, {})
				]
			})]
		}),
		o.value && /* @__PURE__ */ X(Ks, { view: a }),
		/* @__PURE__ */ X("p", {
			id: "coarse",
			class: "hint",
			hidden: !n.coarse || n.preview && !gr(r, a),
			children: Li(n.coarse ? n.excerpt : null, n.preview || n.tile.pyramidLevel > 0 ? n.tile : null)
		}),
		/* @__PURE__ */ X(qs, { label: Bi(i.rows, i.columns, s, n.coarse) }),
		/* @__PURE__ */ X(Ys, {})
	] });
}
function Gs({ part: e, editing: t, edit: n }) {
	let r = Y(), { now: i } = r, a = i.answer.value, o = i.sheet.value;
	if (a === null) return null;
	let s = r.layer.value, c = s?.heads ?? 0, l = o !== null && s !== null && xr(s, o.excerpt), u = o?.head ?? i.head.value;
	return /* @__PURE__ */ X("nav", {
		class: "crumbs",
		"aria-label": "What is shown",
		children: [/* @__PURE__ */ X("span", {
			id: "choices",
			class: "choices",
			hidden: a.layers.length < 2 && c < 2,
			children: [
				/* @__PURE__ */ X("select", {
					id: "layer",
					"aria-label": "Layer",
					value: String(i.layer.value),
					title: r.layer.value?.name,
					onChange: (e) => r.chooseLayer(Number(e.currentTarget.value)),
					children: Mr(a.layers).map(([e, t]) => /* @__PURE__ */ X("optgroup", {
						label: e || "layers",
						children: t.map((e) => /* @__PURE__ */ X("option", {
							value: String(e),
							children: a.layers[e]?.title
						}, e))
					}, e))
				}),
				/* @__PURE__ */ X("span", {
					"aria-hidden": "true",
					class: "between",
					children: "›"
				}),
				/* @__PURE__ */ X("label", { children: [
					"head",
					" ",
					/* @__PURE__ */ X("select", {
						id: "head",
						value: u === null ? "" : String(u),
						onChange: (e) => {
							let { value: t } = e.currentTarget;
							r.chooseHead(t === "" ? null : Number(t));
						},
						children: [(o?.head === null || l) && /* @__PURE__ */ X("option", {
							value: "",
							children: "mean of all"
						}), Array.from({ length: c }, (e, t) => /* @__PURE__ */ X("option", {
							value: String(t),
							children: t
						}, t))]
					})
				] }),
				/* @__PURE__ */ X("span", {
					"aria-hidden": "true",
					class: "between",
					children: "›"
				})
			]
		}), /* @__PURE__ */ X("button", {
			id: "part",
			type: "button",
			class: "quiet",
			"aria-expanded": t,
			title: "Choose a part by numbers",
			onClick: n,
			children: ki(e)
		})]
	});
}
function Ks({ view: t }) {
	let n = Y(), r = n.layer.value, i = P(null);
	if (r === null) return null;
	let o = u(t, e(r)), s = (e) => {
		let t = (t) => i.current?.elements.namedItem(`${e}-${t}`);
		return {
			from: Number(t("first").value),
			to: Number(t("last").value) + 1
		};
	}, c = (e, { from: t, to: n }, r, a, o) => /* @__PURE__ */ X("fieldset", { children: [
		/* @__PURE__ */ X("legend", { children: a }),
		["first", "last"].map((a) => /* @__PURE__ */ X("input", {
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
		}, a)),
		"of ",
		/* @__PURE__ */ X("span", {
			id: `${e}-most`,
			children: `0–${(r - 1).toLocaleString("en")}`
		})
	] });
	return /* @__PURE__ */ X("form", {
		id: "frame",
		class: "frame",
		ref: i,
		autocomplete: "off",
		onSubmit: (e) => {
			e.preventDefault(), n.view({
				rows: s("rows"),
				keys: s("keys")
			});
		},
		children: [
			c("rows", t.rows, r.queries, "Rows, which look", "looks"),
			c("keys", t.keys, r.keys, "Keys, looked at", "is looked at"),
			/* @__PURE__ */ X("div", {
				class: "buttons",
				children: [
					/* @__PURE__ */ X("button", {
						type: "submit",
						children: "Show"
					}),
					/* @__PURE__ */ X("button", {
						type: "button",
						id: "farther",
						disabled: o,
						onClick: () => n.view(a(t, r)),
						children: "Farther"
					}),
					/* @__PURE__ */ X("button", {
						type: "button",
						id: "whole",
						disabled: o,
						onClick: () => n.view(e(r)),
						children: "Whole map"
					})
				]
			})
		]
	});
}
function qs({ label: t }) {
	let n = Y(), r = P(null), i = P(null), a = P(null), o = P(null);
	N(() => {
		if (r.current === null || i.current === null) return;
		let e = ({ row: e, column: t }) => ({
			side: "target",
			index: e,
			partner: t
		});
		return n.map = new Is(n.theme, r.current, i.current, {
			point: (t, r) => {
				n.point(e(t)), r && (n.spoken.value = Js(n, e(t)));
			},
			click: (t) => n.pin(e(t)),
			view: (e) => n.view(e),
			here: () => Xr(n.state),
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
		], [l, u, d, f] = [
			t.view.value,
			t.scale.value,
			t.overview.value,
			t.head.value
		], p = t.pinned.value ?? t.pointed.value;
		if (i === null || s === null || c === null) return;
		let m = d?.tiles[i.layer], h = m?.rows === s.queries && m.keys === s.keys;
		if (a.current?.matrix !== c || a.current.excerpt !== i.excerpt || a.current.scale !== u) {
			a.current = {
				matrix: c,
				excerpt: i.excerpt,
				shade: qt(u, c, s.keys),
				scale: u
			};
			let t = i.head ?? f, n = m === void 0 || t === null && !h ? null : t === null ? It(m) : Pt(m, t);
			o.current = n && {
				matrix: n,
				excerpt: e(s),
				shade: qt(u, n, s.keys),
				scale: u
			};
		}
		n.map?.draw({
			layer: s,
			view: l ?? i.excerpt,
			far: o.current,
			near: a.current,
			rows: i.rows,
			columns: i.keys,
			rightToLeft: d?.rightToLeft.has(i.layer) ?? !1,
			ramp: r.ramp,
			active: p
		});
	};
	return V(s), /* @__PURE__ */ X("div", {
		class: "map-room",
		id: "map-room",
		ref: i,
		children: [/* @__PURE__ */ X("div", {
			class: "stack",
			children: /* @__PURE__ */ X("canvas", {
				id: "map",
				ref: r,
				tabIndex: 0,
				role: "application",
				"aria-roledescription": "map of weights",
				"aria-label": t,
				"aria-describedby": "readout map-help"
			})
		}), /* @__PURE__ */ X("p", {
			id: "map-help",
			class: "unseen",
			children: "Arrow keys move the crosshair, plus and minus zoom, 0 shows all, Enter keeps a cell."
		})]
	});
}
function Js(e, t) {
	let [n, r] = [e.now.sheet.value, e.weights.value];
	if (t === null || n === null || r === null || t.partner === void 0) return "";
	let [i, a] = t.side === "target" ? [n.rows, n.keys] : [n.keys, n.rows], o = Us(r, t), s = i[t.index]?.text ?? "";
	return o === null ? "" : `${q(s)} → ${q(a[t.partner]?.text ?? "")}: ${U(o)}`;
}
function Ys() {
	let e = Y(), { now: t, theme: n } = e, r = P(null), i = e.weights.value, a = t.scale.value;
	return V(() => {
		n.changes.value;
		let e = r.current?.getContext("2d");
		e && _a(e, n.ramp, [], {
			x: 0,
			y: 0,
			width: 256
		}, "", "");
	}), i === null ? null : /* @__PURE__ */ X("div", {
		class: "map-foot",
		children: [
			/* @__PURE__ */ X("label", {
				class: "scale",
				children: [
					"Colours",
					" ",
					/* @__PURE__ */ X("select", {
						id: "scale",
						value: a,
						onChange: (t) => e.set({ scale: t.currentTarget.value }),
						children: Kt.map(([e, t]) => /* @__PURE__ */ X("option", {
							value: e,
							children: t
						}, e))
					})
				]
			}),
			/* @__PURE__ */ X("span", {
				class: "legend",
				children: [/* @__PURE__ */ X("canvas", {
					id: "legend",
					ref: r,
					width: 256,
					height: 10,
					"aria-hidden": "true"
				}), /* @__PURE__ */ X("span", {
					id: "ticks",
					class: "ticks",
					children: Yt(a, Ht(i)).map(({ share: e, text: t }) => /* @__PURE__ */ X("span", {
						ref: (t) => t?.style.setProperty("--share", `${(e * 100).toFixed(1)}%`),
						children: t
					}, e))
				})]
			}),
			/* @__PURE__ */ X(Xs, {})
		]
	});
}
function Xs() {
	let e = Y(), { pinned: t, pointed: n } = e.now;
	return /* @__PURE__ */ X("span", {
		id: "readout",
		class: "readout",
		children: Js(e, Xr({
			pinned: t.value,
			pointed: n.value
		}))
	});
}
// src/separator.tsx
var Zs = 24;
function Qs({ id: e, label: t, orientation: n, property: r, pane: i, least: a, most: o, sign: s, frame: c }) {
	let l = P(null), u = P(null), d = (e) => n === "vertical" ? e.clientX : e.clientY, f = () => {
		let e = c.current?.querySelector(`.pane.${i}`)?.getBoundingClientRect();
		return Math.round((n === "vertical" ? e?.width : e?.height) ?? a);
	}, p = (e) => {
		let t = Math.round(Math.min(Math.max(e, a), o));
		c.current?.style.setProperty(r, `${t}px`), u.current?.setAttribute("aria-valuenow", String(t));
	};
	return N(() => u.current?.setAttribute("aria-valuenow", String(f())), []), /* @__PURE__ */ X("div", {
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
			if (t >= 0) p(f() + s * (t === 0 ? -24 : Zs));
			else if (e.key === "Home") p(a);
			else if (e.key === "End") p(o);
			else return;
			e.preventDefault();
		}
	});
}
// src/screen.tsx
function $s({ explorer: e }) {
	let t = B(!1), { now: n } = e, r = n.problem.value?.gone === !0, i = (n) => {
		let [r] = n.composedPath(), i = r instanceof HTMLElement && /^(INPUT|TEXTAREA|SELECT)$/.test(r.tagName);
		n.key === "Escape" && !t.value && e.unpin(), n.key === "?" && !i && (n.preventDefault(), t.value = !0);
	};
	return N(() => {
		if (e.address !== null) return document.addEventListener("keydown", i), () => document.removeEventListener("keydown", i);
	}, []), /* @__PURE__ */ X(yi, {
		value: e,
		children: /* @__PURE__ */ X("div", {
			class: r ? "screen gone" : "screen",
			onKeyDown: (t) => {
				e.address === null && i(t);
			},
			children: [
				/* @__PURE__ */ X(ec, {
					help: t,
					explorer: e
				}),
				/* @__PURE__ */ X(qi, {}),
				/* @__PURE__ */ X(nc, { explorer: e }),
				/* @__PURE__ */ X(ic, { explorer: e }),
				/* @__PURE__ */ X("p", {
					class: "unseen",
					id: "spoken",
					role: "status",
					"aria-live": "polite",
					children: e.spoken.value
				}),
				/* @__PURE__ */ X(wa, { open: t })
			]
		})
	});
}
function ec({ help: e, explorer: t }) {
	let n = t.now.model.value?.facts ?? {};
	return /* @__PURE__ */ X("header", {
		class: "head",
		children: [
			/* @__PURE__ */ X("h1", {
				class: "mark",
				children: [/* @__PURE__ */ X("svg", {
					viewBox: "0 0 12 12",
					"aria-hidden": "true",
					children: [/* @__PURE__ */ X("path", {
						class: "pale",
						d: "M0 0h12v12H0z"
					}), /* @__PURE__ */ X("path", { d: "M0 0h4v4H0zM4 4h4v4H4zM8 8h4v4H8z" })]
				}), "attlas"]
			}),
			/* @__PURE__ */ X(Wi, {}),
			/* @__PURE__ */ X("p", {
				id: "facts",
				class: "facts",
				title: [...bi(n), xi(n)].filter((e) => e !== "").join(" · "),
				children: bi(n).map((e) => /* @__PURE__ */ X("span", { children: e }, e))
			}),
			/* @__PURE__ */ X("button", {
				id: "help",
				type: "button",
				class: "round",
				"aria-label": "Help",
				title: "Help (?)",
				onClick: () => e.value = !0,
				children: "?"
			})
		]
	});
}
var tc = [
	["heads", "Heads"],
	["map", "Map"],
	["words", "Words"]
];
function nc({ explorer: e }) {
	let { now: t } = e, n = P(null), r = B("map"), i = (t.answer.value?.layers ?? []).reduce((e, { heads: t }) => e + t, 0) > 1, a = t.sheet.value !== null, o = t.translating.value !== null || t.reading.value && t.sheet.value?.preview !== !0, s = (e) => {
		let t = n.current?.querySelector(`.pane.${e}`);
		n.current?.scrollTo({ left: t instanceof HTMLElement ? t.offsetLeft : 0 });
	};
	return V(() => {
		t.sheet.value !== null && requestAnimationFrame(() => s(r.peek()));
	}), a ? /* @__PURE__ */ X(k, { children: [/* @__PURE__ */ X("nav", {
		class: "pane-tabs",
		"aria-label": "Panes",
		children: tc.filter(([e]) => e !== "heads" || i).map(([e, t]) => /* @__PURE__ */ X("button", {
			type: "button",
			"aria-pressed": r.value === e,
			onClick: () => s(e),
			children: t
		}, e))
	}), /* @__PURE__ */ X("main", {
		id: "looking",
		ref: n,
		class: `panes${o ? " stale" : ""}${i ? "" : " single"}`,
		"aria-busy": o,
		onScroll: () => {
			let e = n.current;
			if (e === null || e.scrollWidth <= e.clientWidth) return;
			let t = tc.filter(([e]) => e !== "heads" || i);
			r.value = t[Math.round(e.scrollLeft / e.clientWidth)]?.[0] ?? "map";
		},
		children: [
			/* @__PURE__ */ X("section", {
				id: "heads",
				class: "pane heads",
				"aria-labelledby": "heads-title",
				hidden: !i,
				children: /* @__PURE__ */ X(Sa, {})
			}),
			/* @__PURE__ */ X(Qs, {
				id: "left",
				label: "Width of the heads",
				orientation: "vertical",
				property: "--left",
				pane: "heads",
				least: 150,
				most: 640,
				sign: 1,
				frame: n
			}),
			/* @__PURE__ */ X("section", {
				class: "pane map",
				"aria-label": "Map",
				children: /* @__PURE__ */ X(Ws, {})
			}),
			/* @__PURE__ */ X(Qs, {
				id: "right",
				label: "Width of the words",
				orientation: "vertical",
				property: "--right",
				pane: "words",
				least: 220,
				most: 760,
				sign: -1,
				frame: n
			}),
			/* @__PURE__ */ X("section", {
				class: "pane words",
				"aria-label": "Words",
				children: /* @__PURE__ */ X(ao, {})
			}),
			/* @__PURE__ */ X(Qs, {
				id: "below",
				label: "Height of the inspector",
				orientation: "horizontal",
				property: "--below",
				pane: "inspector",
				least: 120,
				most: 560,
				sign: -1,
				frame: n
			}),
			/* @__PURE__ */ X("section", {
				class: "pane inspector",
				"aria-label": "Inspector",
				children: /* @__PURE__ */ X(ns, {})
			})
		]
	})] }) : /* @__PURE__ */ X("main", {
		id: "looking",
		class: "nothing",
		hidden: t.answer.value !== null && t.answer.value.map === null,
		children: /* @__PURE__ */ X("p", {
			class: "hint",
			children: rc(e)
		})
	});
}
function rc({ now: e }) {
	return e.problem.value === null ? e.model.value === null ? "Opening the model…" : e.translating.value !== null || e.reading.value ? "" : e.model.value.texts === null ? "Type a text above. What the model reads and where it looks stands here." : "There is no text here." : "";
}
function ic({ explorer: e }) {
	let t = e.notice.value;
	return N(() => {
		if (t === "") return;
		let n = setTimeout(() => e.notice.value = "", 8e3);
		return () => clearTimeout(n);
	}, [t]), /* @__PURE__ */ X("p", {
		id: "notice",
		class: "notice",
		role: "status",
		hidden: t === "",
		children: t
	});
}
// src/theme.ts
var ac = [
	"#0067a5",
	"#b8480c",
	"#007a55",
	"#8b3a93",
	"#555555",
	"#8a6a00"
], oc = [
	"#6cc0f5",
	"#ff9d5c",
	"#3fd0a3",
	"#e79be0",
	"#d2d2d2",
	"#ecd84a"
], sc = class {
	frame;
	scheme;
	preference = matchMedia("(prefers-color-scheme: dark)");
	count = R(0);
	read = /* @__PURE__ */ new Map();
	changed = () => this.apply();
	tones;
	constructor(e, t) {
		this.frame = e, this.scheme = t, this.tones = getComputedStyle(e), this.preference.addEventListener("change", this.changed), this.apply();
	}
	get dark() {
		return this.scheme === "dark" || this.scheme === "auto" && this.preference.matches;
	}
	get ramp() {
		return this.dark ? ea : $i;
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
		return this.dark ? na : ta;
	}
	get heads() {
		return this.dark ? oc : ac;
	}
	dispose() {
		this.preference.removeEventListener("change", this.changed);
	}
	apply() {
		this.frame.classList.toggle("dark", this.dark), this.read.clear(), this.count.value += 1;
	}
};
// src/mount.tsx
function cc(e) {
	let t = new CSSStyleSheet();
	return t.replaceSync(e), t;
}
function lc(e, t, n) {
	let r = document.createElement("div");
	r.className = "attlas-explorer";
	let i = r.attachShadow({ mode: "open" });
	i.adoptedStyleSheets = [n.styles];
	let a = document.createElement("div");
	a.className = "explorer", i.append(a), e.append(r);
	let o = new sc(a, n.scheme ?? "auto"), { address: s } = n, c = new mi(t, o, s ?? null);
	Te(/* @__PURE__ */ X($s, { explorer: c }), a);
	let l = s?.whenChanged(() => void c.follow(s.read()));
	return c.begin(s?.read() ?? n.link ?? ""), {
		explorer: c,
		unmount() {
			l?.(), c.stop(), Te(null, a), o.dispose(), r.remove();
		}
	};
}
// src/widget.ts
var uc = class {
	channel;
	waiting = /* @__PURE__ */ new Map();
	latest = 0;
	constructor(e) {
		this.channel = e, e.on("msg:custom", this.hear);
	}
	close() {
		this.channel.off("msg:custom", this.hear), this.waiting.clear();
	}
	async model() {
		return (await this.ask({ ask: "model" })).said;
	}
	translate() {
		return Promise.reject(new H("a text of this trace", "another text", "open the model with attlas look"));
	}
	async text(e, t) {
		return (await this.ask({
			ask: "text",
			row: e
		}, t)).said;
	}
	async overview(e, t) {
		return fr(dc(await this.ask({
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
		let { excerpt: a, head: o, rough: s } = r, c = `${n(a.rows)},${n(a.keys)}`, l = o === null ? {} : { heads: fc({
			from: o,
			to: o + 1
		}) }, u = s ? {
			bits: "8",
			curve: "root"
		} : {}, d = {
			...pc(a),
			shape: c,
			...l,
			...u
		};
		return lr(dc(await this.ask({
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
			query: pc(n)
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
				let n = e.said?.error, o = n === void 0 ? null : H.read(n);
				o === null ? r(e) : i(o);
			}), this.channel.send({
				id: n,
				...e
			});
		});
	}
	hear = (e, t) => {
		let { id: n, answer: r } = e, i = this.waiting.get(n);
		this.waiting.delete(n);
		let a = t[0], o = a && new Uint8Array(a.buffer, a.byteOffset, a.byteLength);
		i?.({
			said: r,
			content: o ? o.slice().buffer : null
		});
	};
};
function dc({ content: e }) {
	if (e !== null) return e;
	throw new H("an answer in bytes", "one without", "run the cell again");
}
function fc({ from: e, to: t }) {
	return `${e}:${t}`;
}
function pc({ rows: e, keys: t }) {
	return {
		rows: fc(e),
		keys: fc(t)
	};
}
var mc = { render({ model: e, el: t }) {
	let n = new uc(e), r = lc(t, n, { styles: cc(":host{height:100%;min-height:36rem;display:block}*,:before,:after{box-sizing:border-box}[hidden]{display:none!important}.explorer{--lightningcss-light:initial;--lightningcss-dark: ;color-scheme:light;--paper:#fbfaf6;--raised:#fff;--line:#dedbd0;--edge:#87836f;--ink:#20242b;--quiet:#5a616d;--accent:#b4471a;--action:#1d5f6e;--on-action:#fff;--wrong:#a3232e;--serif:\"Iowan Old Style\", \"Palatino Linotype\", Palatino, \"Book Antiqua\", Georgia, \"Noto Serif\", serif;--sans:ui-sans-serif, system-ui, -apple-system, \"Segoe UI\", \"Noto Sans\", \"Helvetica Neue\", Arial, sans-serif;background:var(--paper);height:100%;color:var(--ink);font:.875rem / 1.5 var(--sans);text-align:start;container:explorer/inline-size}.explorer.dark{--lightningcss-light: ;--lightningcss-dark:initial;color-scheme:dark;--paper:#14161b;--raised:#1c1f26;--line:#343944;--edge:#7b8291;--ink:#eceae3;--quiet:#a3a9b5;--accent:#ff9d6b;--action:#7fd0dd;--on-action:#0c2025;--wrong:#ff9a9f}p,h1,h2,h3,figure,ol,ul,fieldset{border:0;margin:0;padding:0}fieldset{min-width:0}.unseen{clip-path:inset(50%);white-space:nowrap;width:1px;height:1px;position:absolute;overflow:hidden}:focus-visible{outline:3px solid var(--accent);outline-offset:1px}button,select,input,textarea{font:inherit;color:inherit}button,select,summary,input[type=number]{border:1px solid var(--edge);background:var(--raised);min-height:1.75rem;color:var(--ink);border-radius:.35rem;padding:.125rem .5rem}button,summary{cursor:pointer}button:hover:enabled,summary:hover{border-color:var(--action);color:var(--action)}button:disabled{color:var(--quiet);cursor:default}button.main{border-color:var(--action);background:var(--action);color:var(--on-action);white-space:nowrap;padding:.35rem 1rem;font-weight:600}button.main:hover:enabled{color:var(--on-action);filter:brightness(1.1)}button.quiet,button.link{color:var(--quiet);background:0 0;border-color:#0000}button.quiet:hover:enabled,button.link:hover:enabled{color:var(--action);text-decoration:underline}button.round{border-radius:50%;width:1.75rem;padding:0;font-weight:600}select{text-overflow:ellipsis;max-width:100%}input[type=checkbox],input[type=radio],input[type=range]{accent-color:var(--action);margin:0}.crumbs label,.heads-choices label,.ask label,.scale{min-width:0;color:var(--quiet);align-items:center;gap:.4rem;display:inline-flex}.check{min-height:1.5rem;color:var(--quiet);align-items:center;gap:.4rem;display:inline-flex}kbd{border:1px solid var(--line);background:var(--raised);font:.92em var(--sans);border-radius:.3em;padding:.05em .4em}h2{font:600 1rem / 1.4 var(--serif)}.hint,.note{color:var(--quiet);font-size:.8125rem}.empty{max-width:34rem;padding:1.5rem}.screen{flex-direction:column;height:100%;display:flex;position:relative;overflow:hidden}.head{flex-wrap:wrap;align-items:center;gap:.4rem 1rem;padding:.6rem 1rem;display:flex}.mark{font:600 1.1875rem / 1 var(--serif);letter-spacing:.01em;align-items:center;gap:.5rem;display:flex}.mark svg{width:1rem;height:1rem;fill:var(--action)}.mark .pale{opacity:.25}.ask{flex:100%;order:4;min-width:0}.ask select{max-width:min(40rem,70cqw)}.field{border:1px solid var(--edge);background:var(--raised);border-radius:.6rem;align-items:center;gap:.5rem;padding:.25rem .25rem .25rem .4rem;display:flex}.field:focus-within{border-color:var(--action);outline:2px solid var(--action);outline-offset:-1px}textarea{resize:none;min-width:0;max-height:6rem;font:1.0625rem / 1.45 var(--serif);background:0 0;border:0;outline:0;flex:1;padding:.15rem .3rem}textarea:focus-visible{outline:0}.facts{min-width:0;color:var(--quiet);text-align:end;text-overflow:ellipsis;white-space:nowrap;flex:1 1 0;font-size:.8125rem;overflow:hidden}.facts span:not(:last-child):after{content:\" · \"}.messages{padding:0 1rem}.messages>:last-child{margin-bottom:.4rem}.result{flex-wrap:wrap;align-items:baseline;gap:0 .75rem;max-height:5.4rem;display:flex;overflow:auto}.result h2{color:var(--quiet);font:400 .8125rem / 1.4 var(--sans)}.translation{font:1.25rem / 1.4 var(--serif);text-wrap:pretty;overflow-wrap:anywhere}.remark,.progress{color:var(--quiet)}.problem{border-inline-start:4px solid var(--wrong);background:color-mix(in srgb, var(--wrong) 9%, var(--paper));overflow-wrap:anywhere;border-radius:.3rem;flex-wrap:wrap;justify-content:space-between;align-items:center;gap:.3rem 1rem;margin-bottom:.4rem;padding:.45rem .75rem;display:flex}.pane,.translation{transition:opacity .2s}.stale>.pane,.stale .translation{opacity:.55;transition-delay:.25s}.gone .panes{opacity:.45}.notice{border:1px solid var(--edge);background:var(--raised);overflow-wrap:anywhere;border-radius:.5rem;max-width:min(30rem,90cqw);padding:.5rem .9rem;position:absolute;inset:auto 1rem 1rem auto}.nothing{flex:1;place-content:center;padding:2rem;display:grid}.pane-tabs{border-bottom:1px solid var(--line);gap:.25rem;padding:0 1rem;display:flex}.pane-tabs button,.tabs button{min-height:2.25rem;color:var(--quiet);background:0 0;border:0;border-bottom:3px solid #0000;border-radius:0;padding:0 .75rem}.pane-tabs button{flex:1;min-height:2.75rem}.pane-tabs button[aria-pressed=true],.tabs button[aria-selected=true]{border-bottom-color:var(--action);color:var(--ink);font-weight:600}.panes{scroll-snap-type:x mandatory;scroll-behavior:smooth;scrollbar-width:none;flex:1;grid-template:\"heads map words\"minmax(0,2fr)\"heads map inspector\"minmax(0,3fr)/100% 100% 100%;min-height:0;display:grid;overflow:auto hidden}.panes.single{grid-template:\"map words\"minmax(0,2fr)\"map inspector\"minmax(0,3fr)/100% 100%}.pane{scroll-snap-align:start;flex-direction:column;min-width:0;min-height:0;padding:.5rem 1rem;display:flex;overflow:hidden}.pane.heads{grid-area:heads}.pane.map{grid-area:map}.pane.words{grid-area:words}.pane.inspector{border-top:1px solid var(--line);grid-area:inspector;padding-top:0}.separator{display:none}.pane-head{flex-wrap:wrap;justify-content:space-between;align-items:center;gap:.25rem .75rem;min-height:2.25rem;display:flex}#head{max-width:6rem}#layer{max-width:12rem}.tools{gap:.25rem;margin-inline-start:auto;display:flex}.tools>button{width:1.75rem;padding:0}@container explorer (width>=62.5rem){.head{flex-wrap:nowrap}.ask{flex:30rem;order:0}.ask select{max-width:34rem}.facts{flex:0 auto;max-width:26rem;margin-inline-start:auto}.pane-tabs{display:none}.panes{grid-template:\"heads left map right words\" minmax(0, 1fr) \"below below below below below\" auto \"inspector inspector inspector inspector inspector\" minmax(0, var(--below,252px)) / minmax(0, var(--left,clamp(220px, 23cqw, 380px))) 9px minmax(16rem, 1fr) 9px minmax(0, var(--right,clamp(260px, 27cqw, 440px)));border-top:1px solid var(--line);overflow:hidden}.panes.single{grid-template:\"map right words\" minmax(0, 1fr) \"below below below\" auto \"inspector inspector inspector\" minmax(0, var(--below,252px)) / minmax(16rem, 1fr) 9px minmax(0, var(--right,clamp(260px, 30cqw, 480px)))}.single #left{display:none}#left{grid-area:left}#right{grid-area:right}#below{grid-area:below}.separator{touch-action:none;display:block;position:relative}.separator:before{background:var(--line);content:\"\";position:absolute}.separator.vertical{cursor:col-resize}.separator.vertical:before{inset:0 4px}.separator.horizontal{cursor:row-resize;height:9px}.separator.horizontal:before{inset:4px 0}.separator:hover:before,.separator:focus-visible:before{background:var(--action)}.separator:focus-visible{outline-offset:-3px}.pane.inspector{border-top:0}}.heads-choices{color:var(--quiet);flex-wrap:wrap;align-items:center;gap:.25rem 1rem;padding-bottom:.5rem;font-size:.8125rem;display:flex}.heads-choices select{max-width:10rem}.grid-room{flex:1;min-height:0;overflow:auto}.stack{width:max-content;position:relative}.marks{pointer-events:none;position:absolute;inset:0 auto auto 0}#grid{cursor:pointer;display:block}#grid-readout{min-height:2.5rem;color:var(--ink);font-variant-numeric:tabular-nums;padding-top:.25rem}.crumbs,.choices{font-variant-numeric:tabular-nums;flex-wrap:wrap;align-items:center;gap:.25rem .4rem;min-width:0;display:flex}.between{color:var(--quiet)}.frame{color:var(--quiet);font-variant-numeric:tabular-nums;flex-wrap:wrap;align-items:end;gap:.4rem 1rem;padding:.25rem 0 .5rem;font-size:.8125rem;display:flex}.frame legend{padding:0}.frame input{width:5.5em;margin-inline-end:.25rem}.buttons{flex-wrap:wrap;gap:.25rem;display:flex}.minimap{border:1px solid var(--edge);background:var(--paper);cursor:pointer;touch-action:none;position:absolute;inset:auto 0 0 auto}.map-room{flex:1;place-content:center;min-height:0;display:grid;position:relative;overflow:hidden}#map{cursor:crosshair;display:block}.map-foot{color:var(--quiet);flex-wrap:wrap;align-items:center;gap:.25rem 1.25rem;padding-top:.5rem;font-size:.8125rem;display:flex}.legend{width:15rem;max-width:calc(100% - 2rem);margin:.25rem .75rem 0;position:relative}#legend{border-radius:3px;width:100%;height:10px;display:block}.ticks{font-variant-numeric:tabular-nums;white-space:nowrap;height:1.35em;font-size:.75rem;display:block;position:relative}.ticks span{left:var(--share);position:absolute;transform:translate(-50%)}.ticks span:last-child:nth-child(2){transform:translate(-100%)}.readout{min-height:1.5em;color:var(--ink);text-align:end;font-variant-numeric:tabular-nums;overflow-wrap:anywhere;flex:10rem}.menu{position:relative}summary{align-items:center;list-style:none;display:inline-flex}summary::-webkit-details-marker{display:none}.menu-items{z-index:2;border:1px solid var(--edge);background:var(--raised);border-radius:.5rem;flex-direction:column;min-width:12rem;padding:.25rem;display:flex;position:absolute;inset:calc(100% + .25rem) 0 auto auto}.menu-items button{text-align:start;border-color:#0000}.switches{flex-wrap:wrap;align-items:center;gap:.25rem .75rem;font-size:.8125rem;display:flex}.switch{border:1px solid var(--edge);border-radius:.4rem;display:inline-flex;overflow:hidden}.switch label{display:inline-flex;position:relative}.switch input{opacity:0;cursor:pointer;position:absolute;inset:0}.switch span{background:var(--raised);padding:.15rem .6rem}.switch input:checked+span{background:var(--action);color:var(--on-action)}.switch input:focus-visible+span{outline:3px solid var(--accent);outline-offset:-3px}.texts{flex:1;min-height:0;margin-inline-start:-.3rem;padding:.25rem 0 0 .3rem;overflow-y:auto}.texts h3{color:var(--quiet);font:400 .8125rem / 1.4 var(--sans);padding-top:.5rem}.tokens{contain:content;flex-wrap:wrap;margin-inline-start:-.28rem;display:flex}.token{min-width:1.5rem;max-width:100%;color:inherit;font:1.0625rem / 1.35 var(--serif);overflow-wrap:anywhere;background:0 0;border:0;border-radius:.35rem;flex-direction:column;align-items:center;padding:.15rem .24rem .05rem;display:inline-flex}.token:hover:enabled{color:inherit;box-shadow:inset 0 0 0 1px var(--quiet)}.token.begins{margin-inline-start:.24rem}.token:not(.begins){border-start-start-radius:0;border-end-start-radius:0;min-width:.9rem;padding-inline-start:.05rem}.token.continues{border-start-end-radius:0;border-end-end-radius:0;padding-inline-end:.05rem}.share{min-height:.9rem;font:.6875rem / .9rem var(--sans);font-variant-numeric:tabular-nums}.share:before{content:attr(data-share)}.token.special bdi,.bars .special .word{font-family:var(--sans);font-size:.8125rem}.token.special bdi{line-height:1.43438rem}.token.active,.token.partner,.token.active:hover,.token.partner:hover{box-shadow:inset 0 0 0 2px var(--accent)}.token[aria-pressed=true],.token[aria-pressed=true]:hover:enabled{background:var(--accent)!important;color:var(--paper)!important}.token:focus-visible{z-index:1}.more{color:var(--quiet);align-self:center;padding:0 .6rem;font-size:.8125rem}.caution{border-inline-start:3px solid var(--line);color:var(--quiet);margin-top:.5rem;padding:.1rem 0 .1rem .7rem;font-size:.75rem;line-height:1.4}.tabs{scrollbar-width:none;flex:none;gap:.25rem;margin-inline-start:-.75rem;display:flex;overflow-x:auto}.inspected{flex:1;min-height:0;padding-top:.5rem}.inspected h3{font:600 1rem / 1.35 var(--serif);overflow-wrap:anywhere}.distribution,.lines,.statistics,.compare,.doubt{flex-direction:column;gap:.5rem 2rem;height:100%;min-height:0;display:flex;overflow-y:auto}.aside{flex-direction:column;flex:none;align-items:flex-start;gap:.3rem;font-size:.8125rem;display:flex}.aside>*{flex:none;max-width:100%}.aside p{overflow-wrap:anywhere}.whole{max-height:5rem;overflow:auto}.bars{flex:1 0 9rem;min-height:9rem;list-style:none;overflow:hidden auto}.bars.columns{grid-template-rows:repeat(var(--lines), 26px);grid-auto-columns:236px;grid-auto-flow:column;align-content:start;column-gap:24px;display:grid;overflow:auto hidden}.bars .room{height:var(--room)}.bars.columns .room{width:calc(var(--room) - 24px);grid-row:1/-1;height:auto}.bars .line{border-radius:.25rem;grid-template-columns:minmax(3rem,6.5rem) minmax(2.5rem,1fr) 3.5rem;align-items:center;gap:.5rem;height:26px;padding:0 .2rem;display:grid}.bars .word{text-align:right;text-overflow:ellipsis;white-space:nowrap;overflow:hidden}.track{background:color-mix(in srgb, var(--line) 45%, transparent);border-radius:.2rem;height:.75rem}.bar{border-radius:inherit;height:100%;display:block}.number{color:var(--quiet);font-variant-numeric:tabular-nums;text-align:end;white-space:nowrap;font-size:.8125rem}.bars .top{font-weight:600}.bars .top .number{color:var(--ink)}.bars .partner{box-shadow:inset 0 0 0 2px var(--accent)}.slider{width:100%;max-width:20rem;color:var(--quiet);flex-wrap:wrap;gap:0 .4rem;display:flex}.slider output{color:var(--ink);font-variant-numeric:tabular-nums}.slider input{flex:100%;min-height:1.5rem}.heads-legend{list-style:none}.heads-legend li{align-items:center;gap:.5rem;min-height:1.5rem;display:flex}.heads-legend li button{min-height:1.5rem}.heads-legend .apart{color:var(--quiet)}.swatch{background:var(--paint);border-radius:.2rem;width:1.25rem;height:.35rem}.lines-room{cursor:pointer;flex:1 0 12rem;grid-template:max-content/max-content;min-width:0;min-height:12rem;display:grid;position:relative;overflow:hidden auto}.lines-room.wide{overflow:auto hidden}.spacer,.sticky{grid-area:1/1;place-self:start}.sticky{transition:opacity .12s;display:block;position:sticky;top:0;left:0}.faded{opacity:.35}#interpretation p+p{margin-top:.2rem}.table-room{flex:none;overflow:auto}.statistics table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.8125rem}.statistics th,.statistics td{text-align:end;white-space:nowrap;padding:.05rem .6rem}.statistics thead th{background:var(--paper);color:var(--quiet);font-weight:400;position:sticky;top:0}.statistics tbody th{font-weight:400}.statistics tr.shown :is(td,th){background:color-mix(in srgb, var(--action) 12%, var(--paper));font-weight:600}.statistics .link{min-height:1.5rem;color:var(--ink);padding:0 .4rem;text-decoration:underline}.doubt label{align-items:center;gap:.4rem;width:100%;min-height:1.75rem;display:flex}.doubt :is(select,input){flex:6rem;min-width:0}.notes textarea{border:1px solid var(--edge);background:var(--paper);width:100%;color:inherit;font:inherit;resize:vertical;border-radius:.3rem;padding:.4rem}.notes ul{flex:auto;min-height:0;list-style:none;overflow:hidden auto}.notes li{border-bottom:1px solid var(--line);max-width:40rem;padding-block:.4rem}.notes li p{overflow-wrap:anywhere;white-space:pre-wrap}.notes :is(li button,li a){min-height:1.5rem}.doubt table{border-collapse:collapse;font-variant-numeric:tabular-nums;width:100%;font-size:.8125rem}.doubt caption{text-align:start;color:var(--quiet);padding-bottom:.2rem}.doubt :is(th,td){border-top:1px solid var(--line);text-align:end;vertical-align:baseline;white-space:nowrap;padding:.1rem .5rem}.doubt thead :is(th,td){color:var(--quiet);border-top:0;font-weight:400}.doubt :is(th:first-child,.five,.impossible,thead th:last-child){text-align:start;white-space:normal}.doubt tbody th{overflow-wrap:anywhere;min-width:7rem;font-weight:600}.doubt .table-room .note{padding-top:.5rem}.five{min-width:9rem}.five span{color:var(--quiet);margin-inline-end:.6rem;display:inline-block}.five .own{color:var(--ink);font-weight:600}.seek{padding:.5rem 0}.slopes{flex:none;min-width:0;font-size:.8125rem}.slopes figcaption{color:var(--quiet);padding-bottom:.2rem}.slopes b{color:var(--ink)}.slopes ol{margin:0;padding:2px;list-style:none}.slope{border-radius:.25rem;grid-template-columns:minmax(3rem,6rem) minmax(2rem,1fr) 3.4rem minmax(3rem,1fr) 3.4rem;align-items:center;gap:.4rem;min-height:1.5rem;padding:0 .2rem;display:grid}.slope.partner{box-shadow:inset 0 0 0 2px var(--accent)}.slope .word{text-align:end;text-overflow:ellipsis;white-space:nowrap;overflow:hidden}.slope .track{position:relative;overflow:hidden}.slope .bar{background:var(--action);position:absolute;inset:0 auto 0 0}.slope .bar.other{background:var(--ink);inset-block:60% 0}.slope .middle{background:linear-gradient(var(--edge), var(--edge)) center / 1px 100% no-repeat, color-mix(in srgb, var(--line) 45%, transparent)}.slope .bar.up{inset-inline:50% auto}.slope .bar.down{background:var(--accent);inset-inline:auto 50%}.mechanism .check{width:auto}.mechanism .check input{flex:none}.mechanism .slider{flex-wrap:wrap}.mechanism .slider input{flex:100%}.mechanism .buttons button{min-height:1.5rem}.mechanism .partner :is(th,td){background:color-mix(in srgb, var(--action) 12%, var(--paper))}.mechanism .link{max-width:100%;min-height:1.5rem;color:var(--ink);text-align:start;overflow-wrap:anywhere;padding:0 .2rem;text-decoration:underline}.mechanism .link[aria-pressed=true]{font-weight:600}.mechanism tbody th{min-width:4rem}.mechanism .wide{text-align:start;width:40%;min-width:7rem}.mechanism .wide .track{vertical-align:middle;width:calc(100% - 3.8rem);display:inline-block;overflow:hidden}.mechanism .wide .bar{background:var(--action)}.mechanism .wide .number{width:3.6rem;display:inline-block}.tree{flex:none;min-width:0;font-size:.8125rem;overflow:auto}.tree ul{flex-direction:column;gap:.3rem;margin:0;padding:0;list-style:none;display:flex}.tree li>ul{border-inline-start:2px solid var(--edge);margin-inline-start:.5rem;padding-inline-start:.6rem}.tree .words{overflow-wrap:anywhere;padding:.1rem 0;display:block}.tree bdi{font:1rem / 1.35 var(--serif)}.tree .own bdi{font-weight:600}.tree .number{text-align:start;white-space:normal;display:block}.beams .five .link{min-height:1.5rem;margin-inline-end:.3rem;padding:0 .3rem;text-decoration:underline}.beams .partner :is(th,td){background:color-mix(in srgb, var(--action) 12%, var(--paper))}.formula .number{color:var(--ink)}.formula{font-variant-numeric:tabular-nums;flex-direction:column;gap:.2rem;display:flex}.strip{margin-bottom:.45rem}.strip span{overflow-wrap:anywhere;display:block}.strip small{color:var(--quiet);font-variant-numeric:tabular-nums}.strip canvas{display:block}.places{min-width:0;color:var(--quiet);flex-direction:column;flex:1 0 8rem;font-size:.8125rem;display:flex}.places b{color:var(--ink);font-weight:600}.places canvas{flex:1;width:100%;min-height:6rem}.small-map{flex-direction:column;flex:1 0 12rem;min-width:0;font-size:.8125rem;display:flex}.small-map figcaption{text-overflow:ellipsis;white-space:nowrap;overflow:hidden}.small-room{flex:1;min-height:8rem;margin-bottom:.4rem;overflow:hidden}.small-map canvas{display:block}@container explorer (width>=62.5rem){.distribution,.lines,.statistics,.compare,.doubt{flex-direction:row;overflow:hidden}.aside{width:19rem;max-height:100%;overflow-y:auto}.statistics .aside{width:22rem}.doubt .table-room{flex:32rem}.beams .tree{flex:24rem}.doubt .slopes{flex:0 21rem;overflow:hidden auto}.bars,.lines-room{min-height:0}.statistics .table-room{max-width:50%}.small-map{flex:1 1 0}.small-room,.places canvas{min-height:0}}dialog{border:1px solid var(--edge);background:var(--paper);max-width:min(44rem,94vw);max-height:90vh;color:var(--ink);border-radius:.75rem;padding:0}dialog::backdrop{background:#00000073}.help{flex-direction:column;gap:.75rem;padding:1.5rem;display:flex}.help h2{font-size:1.25rem}.help table{border-collapse:collapse}.help :is(th,td){text-align:start;vertical-align:top;padding:.15rem .75rem .15rem 0}.help .main{align-self:end}@media (prefers-reduced-motion:reduce){*{scroll-behavior:auto!important;transition:none!important}}@media (forced-colors:active){.token.active,.token.partner{outline:2px solid highlight}.token[aria-pressed=true]{outline:3px solid highlight}.separator:before{background:canvastext}.tabs button[aria-selected=true],.pane-tabs button[aria-pressed=true]{border-bottom-color:highlight}.switch input:checked+span{color:highlighttext;forced-color-adjust:none;background:highlight}.bar,.swatch,.token,canvas{forced-color-adjust:none}}") });
	return () => {
		r.unmount(), n.close();
	};
} };
export { uc as Messages, mc as default };
