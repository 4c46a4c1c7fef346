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
var f, p, m, h, g, _, v, y, b, x, S, ee, C = Symbol.for("pv"), w = {}, T = [], E = /^m(i|n|o|s|text|space)$/, te = Array.isArray, ne = T.slice, D = Object.assign;
function re(e) {
	e && e.parentNode && e.remove();
}
function O(e, t, n) {
	var r, i, a, o = {}, s = arguments.length;
	for (a in t) a == "key" ? r = t[a] : a == "ref" && typeof e != "function" ? i = t[a] : o[a] = t[a];
	return s > 2 && (o.children = s > 3 ? ne.call(arguments, 2) : n), k(e, o, r, i, null);
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
		constructor: C,
		__v: i || ++p,
		__i: -1,
		__u: 0
	};
	return !i && f.vnode && f.vnode(a), a;
}
function A(e) {
	return e.children;
}
function ie(e, t) {
	this.props = e, this.context = t, this.__g = 0;
}
function j(e, t) {
	if (t == null) return e.__ && j(e.__, e.__i + 1);
	for (var n; t < e.__k.length; t++) if ((n = e.__k[t]) && n.__e) return n.__e;
	return typeof e.type != "function" || e.props.__P ? null : j(e);
}
function M(e) {
	var t, n = e.__v, r = n.__e, i = [], a = [], o = e.__P;
	o && ((t = D({ constructor: C }, n)).__v = n.__v + 1, f.vnode && f.vnode(t), he(o, t, n, e.__n, o.namespaceURI, 32 & n.__u ? [r] : null, i, r || j(n), 32 & n.__u, a), t.__v = n.__v, t.__.__k[t.__i] = t, ve(i, t, a), n.__ = n.__e = null, t.__e != r && ae(t));
}
function ae(e) {
	if ((e = e.__) && e.__c && !e.props.__P) return e.__e = null, e.__k.some(function(t) {
		return t && (e.__e = t.__e);
	}), ae(e);
}
function oe(e) {
	(8 & e.__g || (e.__g |= 8, h.push(e), _++)) && g == f.debounceRendering || ((g = f.debounceRendering) || queueMicrotask)(se);
}
function se() {
	try {
		for (var e, t = 1; h.length;) h.length > t && h.sort(v), e = h.shift(), t = h.length, 8 & e.__g && M(e);
	} finally {
		(_ = h.length) && (g || queueMicrotask)(se);
	}
}
function ce(e, t, n, r, i, a, o, s, c, l, u) {
	var d, f, p, m, h, g, _ = r.__k || T, v = t.length;
	for (c = le(n, t, _, c, v), d = 0; d < v; d++) (p = n.__k[d]) != null && (f = ~p.__i && _[p.__i] || w, p.__i = d, g = he(e, p, f, i, a, o, s, c, l, u), m = p.__e, (f.ref != p.ref || 8 & f.__u) && (f.ref && be(f.ref, null, p, f), p.ref && u.push(p.ref, p.__c || m, p)), h ||= m, 4 & p.__u ? (c = ue(p, c, e, !f.__v), f.__e && (f.__e = null)) : typeof p.type == "function" && g !== void 0 ? c = g : m && (c = m.nextSibling), p.__u &= -21);
	return n.__e = h, c;
}
function le(e, t, n, r, i) {
	var a, o, s, c, l, u, d, f, p, m = n.length, h = m, g = 0, _ = 0, v = e.__k = Array(i);
	for (a = 0; a < i; a++) (o = t[a]) != null && typeof o != "boolean" && typeof o != "function" ? (typeof o != "object" || o.constructor === String ? o = v[a] = k(null, o) : te(o) ? o = v[a] = k(A, { children: o }) : o.constructor === C && o.__b ? o = v[a] = k(o.type, o.props, o.key, o.ref, o.__v) : v[a] = o, c = a + g, o.__ = e, o.__b = e.__b + 1, s = null, ~(l = o.__i = de(o, n, c, h)) && (h--, (s = n[l]) && (s.__u |= 2)), s && s.__v ? (o.__u |= 16, l == c - 1 ? g-- : l == c + 1 ? g++ : l != c && (l > c ? g-- : g++, _ = 1)) : (~l || (i > m ? g-- : i < m && g++), typeof o.type != "function" && (o.__u |= 4))) : v[a] = null;
	if (_) {
		for (u = [], d = [], a = 0; a < i; a++) if ((o = v[a]) && 16 & o.__u) {
			for (g = 0, f = u.length; g < f;) u[p = g + f >> 1] < o.__i ? g = p + 1 : f = p;
			u[g] = o.__i, d[a] = g + 1;
		}
		for (g = u.length; a--;) d[a] && (d[a] == g ? g-- : v[a].__u |= 4);
	}
	if (h) for (a = 0; a < m; a++) !(s = n[a]) || 2 & s.__u || (s.__e == r && (r = j(s)), xe(s, s));
	return r;
}
function ue(e, t, n, r) {
	var i, a, o, s;
	if (typeof e.type == "function") {
		if (e.props.__P) return t;
		if (i = e.__k) for (a = 0; a < i.length; a++) i[a] && (i[a].__ = e, t = ue(i[a], t, n, !1));
		return t;
	}
	for (t && !t.parentNode && (t = j(e)) && !t.parentNode && (t = null), o = e.__e, s = t; s && s.nodeType == 8;) s = s.nextSibling;
	for (o != s && (!r && n.moveBefore && o.parentNode ? n.moveBefore(o, t) : n.insertBefore(o, t || null)), t = o; (t &&= t.nextSibling) && t.nodeType == 8 && !t.data.startsWith("$s"););
	return t;
}
function de(e, t, n, r) {
	var i, a = e.key, o = e.type, s = t[n], c = s && !(2 & s.__u);
	if (s === null && a == null || c && a == s.key && o == s.type) return n;
	if (r > +!!c) {
		for (i = n - 1; i >= 0; i--) if ((s = t[i]) && !(2 & s.__u) && a == s.key && o == s.type) return i;
		for (i = n + 1; i < t.length; i++) if ((s = t[i]) && !(2 & s.__u) && a == s.key && o == s.type) return i;
	}
	return -1;
}
function fe(e, t, n) {
	n ??= "", t[0] == "-" ? e.setProperty(t, n) : e[t] = n;
}
function pe(e, t, n, r, i) {
	var a, o;
	if (t == "style") {
		if (typeof n == "string") e.style.cssText = n;
		else {
			if (typeof r == "string" && (e.style.cssText = r = ""), r) for (t in r) n && t in n || fe(e.style, t);
			if (n) for (t in n) r && n[t] == r[t] || fe(e.style, t, n[t]);
		}
	} else if (t[0] == "o" && t[1] == "n") typeof n != "function" && (n = null), typeof r != "function" && (r = null), (e.__e ||= {})[t] = n, n && r || (o = S[t] || (S[t] = me(t)), (e.__a ||= {})[t] = x, a = t != (t = t.replace(b, "$1")), (t = t.slice(2))[0] < "a" && (t = t.toLowerCase()), n ? e.addEventListener(t, o, a) : e.removeEventListener(t, o, a));
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
function me(e) {
	return function(t) {
		var n = this.__e;
		if (n) {
			if (n = n[e], t[y] == null) t[y] = x++;
			else if (t[y] < this.__a[e]) return;
			return n(f.event ? f.event(t) : t);
		}
	};
}
function he(e, t, n, r, i, a, o, s, c, l) {
	var u, d, p, m, h, g, _, v, y, b, x, S, ee, w, E, ne, O, k, M = t.type;
	if (t.constructor !== C) return null;
	128 & n.__u && (c = 32 & n.__u, u = n.__c.__z) && (t.__u |= c, d = a = [], u.nodeType == 8 ? s = ge(u, a) : a.push(u), s = a[0] || s), (u = f.__b) && u(t);
	n: if (typeof M == "function") {
		p = o.length;
		try {
			if (v = t.props, y = (u = M.prototype) && u.render, b = (u = M.contextType) && r[u.__c], x = u ? b ? b.props.value : u.__ : r, (m = n.__c) ? (t.__c = m, 2 & m.__g && (m.__g |= 1)) : (y ? t.__c = m = new M(v, x) : (t.__c = m = new ie(v, x), m.constructor = M, m.render = Se), b && b.sub(m), m.state || (m.state = {}), m.__n = r, m.__g |= 8, m.__h = [], m.__k = []), y && (m.__s || (m.__s = m.state), M.getDerivedStateFromProps && (m.__s == m.state && (m.__s = D({}, m.__s)), D(m.__s, M.getDerivedStateFromProps(v, m.__s)))), h = m.props, g = m.state, m.__v = t, n.__c) {
				if (v !== h && y && !M.getDerivedStateFromProps && m.componentWillReceiveProps && m.componentWillReceiveProps(v, x), t.__v == n.__v && !(8 & m.__g) || !(4 & m.__g) && m.shouldComponentUpdate && !1 === m.shouldComponentUpdate(v, m.__s, x)) {
					t.__v != n.__v && (m.props = v, m.state = m.__s, m.__g &= -9), t.__e = n.__e, t.__k = n.__k, t.__k.some(function(e) {
						e && (e.__ = t);
					}), T.push.apply(m.__h, m.__k), m.__k = [], m.__h.length && o.push(m), s = j(n);
					break n;
				}
				m.componentWillUpdate && m.componentWillUpdate(v, m.__s, x), y && m.componentDidUpdate && m.__h.push(function() {
					m.componentDidUpdate(h, g, _);
				});
			} else y && !M.getDerivedStateFromProps && m.componentWillMount && m.componentWillMount(), y && m.componentDidMount && m.__h.push(m.componentDidMount);
			m.context = x, m.props = v, m.__P = e, m.__g &= -5, S = f.__r, ee = y ? 25 : 0;
			do
				m.__g &= -9, S && S(t), u = m.render(m.props, m.state = m.__s, m.context);
			while (8 & m.__g && ++ee < 25);
			y && (T.push.apply(m.__h, m.__k), m.__k = []), m.state = m.__s, m.getChildContext && (r = D({}, r, m.getChildContext())), y && n.__c && m.getSnapshotBeforeUpdate && (_ = m.getSnapshotBeforeUpdate(h, g)), w = u && u.type === A && u.key == null ? u.props.children : u, v.__P && (u = s, i = (e = v.__P).namespaceURI, c = a = null, n.props && n.props.__P != e && (n.__k.some(function(e) {
				e && xe(e, e);
			}), n.__k = null), s = n.__k ? j(n, 0) : null), s = ce(e, te(w) ? w : [w], t, n, r, i, a, o, s, c, l), v.__P && (t.__e = null, s = u), t.__u &= -161, d && d.some(re), m.__h.length && o.push(m), 1 & m.__g && (m.__g &= -4);
		} catch (e) {
			if (o.length = p, t.__v = null, c || a) {
				if (e && e.then) {
					if (t.__u |= 128 | c, a) {
						for (~(O = a.indexOf(s || void 0)) || (O = a.length); (k = a[O - 1]) && k.nodeType == 8;) O--;
						for (; O < a.length; O++) if (k = a[O]) {
							if (a[O] = null, E) {
								if (k == ne) break;
							} else {
								if (k.nodeType != 8) break;
								k.data.startsWith("$s") && (ne = ge(E = k));
							}
						}
					}
					if (!E) {
						for (; s && s.nodeType == 8 && s.nextSibling;) s = s.nextSibling;
						E = s;
					}
					(u = ge(E = t.__c.__z || (t.__c.__z = E))) ? (t.__e = E, s = u) : t.__e = s, s &&= s.nextSibling;
				} else a && a.some(re);
			} else t.__e = n.__e;
			t.__k ||= n.__k || [], e && e.then || _e(t), f.__e(e, t, n);
		}
	} else s = t.__e = ye(n.__e, t, n, r, i, a, o, c, l, e);
	return (u = f.diffed) && u(t), s;
}
function ge(e, t) {
	if (e && e.nodeType == 8 && e.data.startsWith("$s")) for (var n = 1; e = e.nextSibling;) {
		if (e.nodeType == 8) {
			if (e.data.startsWith("$s")) n++;
			else if (e.data.startsWith("/$s") && !--n) return e;
		}
		t && t.push(e);
	}
}
function _e(e) {
	e && (e.__c && (e.__c.__g |= 4), e.__k && e.__k.some(_e));
}
function ve(e, t, n) {
	for (var r = 0; r < n.length;) be(n[r++], n[r++], n[r++]);
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
function ye(e, t, n, r, i, a, o, s, c, l) {
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
		for (u in y) h = y[u], u == "dangerouslySetInnerHTML" ? p = h : u == "children" || u in b || u == "value" && "defaultValue" in b || u == "checked" && "defaultChecked" in b || pe(e, u, null, h, i);
		for (u in b) h = b[u], u == "children" ? m = h : u == "dangerouslySetInnerHTML" ? d = h : u == "value" ? g = h : u == "checked" ? _ = h : s && typeof h != "function" || y[u] === h || pe(e, u, h, y[u], i);
		d ? (s || p && (d.__html == p.__html || d.__html == e.innerHTML) || (e.innerHTML = d.__html), t.__k = []) : (p && (e.textContent = ""), (x == "foreignObject" || i == "http://www.w3.org/1998/Math/MathML" && E.test(x)) && (i = "http://www.w3.org/1999/xhtml"), ce(l, te(m) ? m : [m], t, n, r, i, a, o, a ? a[0] : n.__k && j(n, 0), s, c), a && a.some(re)), s && x != "textarea" || (u = "value", x == "progress" && g == null ? e.removeAttribute(u) : g == null || g === e[u] && (x != "progress" || g) || pe(e, u, g, y[u], i), u = "checked", _ != null && _ != e[u] && pe(e, u, _, y[u], i));
	} else y === b || s && e.data == b || (e.data = b);
	return e;
}
function be(e, t, n, r) {
	try {
		typeof e == "function" ? t ? t.__x = e(t) || 1 : (r &&= r.__c || r.__e) && (t = r.__x) && (r.__x = null, typeof t == "function" ? t() : e(null)) : e.current = t;
	} catch (e) {
		f.__e(e, n);
	}
}
function xe(e, t, n) {
	var r, i, a, o;
	if (f.unmount && f.unmount(e), !(r = e.ref) || r.current && r.current != e.__e || be(r, null, t, e), r = e.__c) {
		if (r.componentWillUnmount) try {
			r.componentWillUnmount();
		} catch (e) {
			f.__e(e, t);
		}
		r.__P = r.__n = null;
	}
	if (r = e.__k) for (o = 0; o < r.length; o++) r[o] && xe(r[o], t, typeof e.type != "function" || n && !e.props.__P);
	!n && (r = e.__c) && (r = r.__z) && (i = ge(r, a = [])) && (r == e.__e && a.some(re), re(i), re(r)), n || re(e.__e), e.__e = e.__c = e.__ = null;
}
function Se(e, t, n) {
	return this.constructor(e, n);
}
function Ce(e, t) {
	var n, r, i, a;
	f.__ && f.__(e, t), t.nodeType == 9 && (t = t.documentElement), r = (n = e && 32 & e.__u) ? null : t.__k, t.__k = k(A, { children: [e] }), i = [], a = [], he(t, t.__k, r || w, w, t.namespaceURI, r ? null : t.firstChild ? ne.call(t.childNodes) : null, i, r ? r.__e : t.firstChild, n, a), ve(i, t.__k, a), t.__k.props.children = null;
}
function we(e) {
	function t(e) {
		var n, r;
		return this.getChildContext || (n = /* @__PURE__ */ new Set(), (r = {})[t.__c] = this, this.getChildContext = function() {
			return r;
		}, this.shouldComponentUpdate = function(e) {
			this.props.value != e.value && n.forEach(function(e) {
				e.__g |= 4, oe(e);
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
}, ie.prototype.setState = function(e, t) {
	var n = this.__s;
	n && n != this.state || (n = this.__s = D({}, this.state)), typeof e == "function" && (e = e(D({}, n), this.props)), e && (D(n, e), this.__v && (t && this.__k.push(t), oe(this)));
}, ie.prototype.forceUpdate = function(e) {
	this.__v && (this.__g |= 4, e && this.__h.push(e), oe(this));
}, ie.prototype.render = A, h = [], _ = 0, v = function(e, t) {
	return e.__v.__b - t.__v.__b;
}, y = Symbol(), b = /(PointerCapture)$|Capture$/i, x = 0, S = {}, ee = 0;
// node_modules/preact/hooks/dist/hooks.mjs
var Te, N, Ee, De, Oe = Object.is, ke = 0, Ae = [], je = [], P = f, Me = P.__b, Ne = P.__r, Pe = P.diffed, Fe = P.__c, Ie = P.unmount, Le = P.__;
function Re(e, t) {
	P.__h && P.__h(N, e, ke || t), ke = 0;
	var n = N.__H || (N.__H = {
		__: [],
		__h: []
	});
	return e >= n.__.length && n.__.push({}), n.__[e];
}
function F(e, t) {
	var n = Re(Te++, 3);
	!P.__s && qe(n.__H, t) && (n.__P = !0, n.__ = e, n.u = t, N.__H.__h.push(n));
}
function I(e) {
	return ke = 5, ze(function() {
		return { current: e };
	}, []);
}
function ze(e, t) {
	var n = Re(Te++, 7);
	return qe(n.__H, t) && (n.__ = e(), n.__H = t), n.__;
}
function Be(e) {
	var t = N.context[e.__c], n = Re(Te++, 9);
	return n.c = e, t ? (n.__ ?? (n.__ = !0, t.sub(N)), t.props.value) : e.__;
}
function Ve() {
	var e;
	do {
		for (; e = je.shift();) try {
			Ge(e);
		} catch (t) {
			P.__e(t, { __: (e = e.__P) && e.__v });
		}
		for (; e = Ae.shift();) {
			var t = e.__H;
			if (e.__P && t) try {
				t.__h.some(Ge), t.__h.some(Ke), t.__h = [];
			} catch (n) {
				t.__h = [], P.__e(n, e.__v);
			}
		}
	} while (je.length);
}
P.__b = function(e) {
	N = null, Me && Me(e);
}, P.__ = function(e, t) {
	e && t.__k && t.__k.__m && (e.__m = t.__k.__m), Le && Le(e, t);
}, P.__r = function(e) {
	Ne && Ne(e), Te = 0;
	var t = (N = e.__c).__H;
	t && (Ee == N ? N.__h = [] : (t.__h.some(Ge), t.__h.some(Ke), Te = 0), t.__h = [], t.__.some(function(e) {
		e.__N && (e.__ = e.__N), e.u = e.__N = void 0;
	})), Ee = N;
}, P.diffed = function(e) {
	Pe && Pe(e);
	var t = e.__c;
	t && t.__H && (t.__H.__h.length && We(Ae.push(t)), t.__H.__.some(function(e) {
		e.u && (e.__H = e.u);
	})), Ee = N = null;
}, P.__c = function(e, t) {
	t.some(function(e) {
		try {
			e.__h.some(Ge), e.__h = e.__h.filter(function(e) {
				return !e.__ || Ke(e);
			});
		} catch (t) {
			e.__h = [function() {
				throw t;
			}];
		}
	}), Fe && Fe(e, t);
}, P.unmount = function(e) {
	Ie && Ie(e);
	var t, n, r = e.__c;
	r && r.__H && (r.__H.__.some(function(r) {
		try {
			if (r.__P && r.__c) {
				if (n === void 0) {
					for (n = e.__; n && (!n.__c || !n.__c.__P);) n = n.__;
					n &&= n.__c;
				}
				r.__P = n, We(je.push(r));
			} else Ge(r);
		} catch (e) {
			t = e;
		}
	}), r.__H = void 0, t && P.__e(t, r.__v));
};
var He = typeof requestAnimationFrame == "function";
function Ue(e) {
	var t, n = function() {
		clearTimeout(r), He && cancelAnimationFrame(t), setTimeout(e);
	}, r = setTimeout(n, 35);
	He && (t = requestAnimationFrame(n));
}
function We(e) {
	e != 1 && De == P.requestAnimationFrame || ((De = P.requestAnimationFrame) || Ue)(Ve);
}
function Ge(e) {
	var t = N, n = e.__c;
	typeof n == "function" && (e.__c = void 0, n()), N = t;
}
function Ke(e) {
	var t = N;
	e.__c = e.__(), N = t;
}
function qe(e, t) {
	return !e || e.length != t.length || t.some(function(t, n) {
		return !Oe(t, e[n]);
	});
}
// node_modules/@preact/signals-core/dist/signals-core.module.js
var Je = Symbol.for("preact-signals");
function Ye() {
	if (R > 1) R--;
	else {
		var e, t = !1;
		for ((function() {
			var e = rt;
			for (rt = void 0; e !== void 0;) {
				var t = e.S;
				if (t.v === e.v) for (var n = t.t; n !== void 0; n = n.x) n.i === e.i && (n.i = t.i);
				e = e.o;
			}
		})(); $e !== void 0;) {
			var n = $e;
			for ($e = void 0, et++; n !== void 0;) {
				var r = n.u;
				if (n.u = void 0, n.f &= -3, !(8 & n.f) && ot(n)) try {
					n.c();
				} catch (n) {
					t ||= (e = n, !0);
				}
				n = r;
			}
		}
		if (et = 0, R--, t) throw e;
	}
}
function Xe(e) {
	if (R > 0) return e();
	nt = ++tt, R++;
	try {
		return e();
	} finally {
		Ye();
	}
}
var Ze, L = void 0;
function Qe(e) {
	var t = L, n = Ze;
	L = void 0, Ze = void 0;
	try {
		return e();
	} finally {
		L = t, Ze = n;
	}
}
var $e = void 0, R = 0, et = 0, tt = 0, nt = 0, rt = void 0, it = 0;
function at(e) {
	if (L !== void 0) {
		var t = e.n;
		if (t === void 0 || t.t !== L) return t = {
			i: 0,
			S: e,
			p: L.s,
			n: void 0,
			t: L,
			e: void 0,
			x: void 0,
			r: t
		}, L.s !== void 0 && (L.s.n = t), L.s = t, e.n = t, 32 & L.f && e.S(t), t;
		if (t.i === -1) return t.i = 0, t.n !== void 0 && (t.n.p = t.p, t.p !== void 0 && (t.p.n = t.n), t.p = L.s, t.n = void 0, L.s.n = t, L.s = t), t;
	}
}
function z(e, t) {
	this.v = e, this.i = 0, this.n = void 0, this.t = void 0, this.l = 0, this.W = t?.watched, this.Z = t?.unwatched, this.name = t?.name;
}
z.prototype.brand = Je, z.prototype.h = function() {
	return !0;
}, z.prototype.S = function(e) {
	var t = this, n = this.t;
	n !== e && e.e === void 0 && (e.x = n, this.t = e, n === void 0 ? Qe(function() {
		var e;
		(e = t.W) == null || e.call(t);
	}) : n.e = e);
}, z.prototype.U = function(e) {
	var t = this;
	if (this.t !== void 0) {
		var n = e.e, r = e.x;
		n !== void 0 && (n.x = r, e.e = void 0), r !== void 0 && (r.e = n, e.x = void 0), e === this.t && (this.t = r, r === void 0 && Qe(function() {
			var e;
			(e = t.Z) == null || e.call(t);
		}));
	}
}, z.prototype.subscribe = function(e) {
	var t = this;
	return ht(function() {
		var n = t.value;
		Qe(function() {
			return e(n);
		});
	}, { name: "sub" });
}, z.prototype.valueOf = function() {
	return this.value;
}, z.prototype.toString = function() {
	return this.value + "";
}, z.prototype.toJSON = function() {
	return this.value;
}, z.prototype.peek = function() {
	var e = this;
	return Qe(function() {
		return e.value;
	});
}, Object.defineProperty(z.prototype, "value", {
	get: function() {
		var e = at(this);
		return e !== void 0 && (e.i = this.i), this.v;
	},
	set: function(e) {
		if (e !== this.v) {
			if (et > 100) throw Error("Cycle detected");
			(function(e) {
				R !== 0 && et === 0 && e.l !== nt && (e.l = nt, rt = {
					S: e,
					v: e.v,
					i: e.i,
					o: rt
				});
			})(this), this.v = e, this.i++, it++, R++;
			try {
				for (var t = this.t; t !== void 0; t = t.x) t.t.N();
			} finally {
				Ye();
			}
		}
	}
});
function B(e, t) {
	return new z(e, t);
}
function ot(e) {
	for (var t = e.s; t !== void 0; t = t.n) if (t.S.i !== t.i || !t.S.h() || t.S.i !== t.i) return !0;
	return !1;
}
function st(e) {
	for (var t = e.s; t !== void 0; t = t.n) {
		var n = t.S.n;
		if (n !== void 0 && (t.r = n), t.S.n = t, t.i = -1, t.n === void 0) {
			e.s = t;
			break;
		}
	}
}
function ct(e) {
	for (var t = e.s, n = void 0; t !== void 0;) {
		var r = t.p;
		t.i === -1 ? (t.S.U(t), r !== void 0 && (r.n = t.n), t.n !== void 0 && (t.n.p = r)) : n = t, t.S.n = t.r, t.r !== void 0 && (t.r = void 0), t = r;
	}
	e.s = n;
}
function lt(e, t) {
	z.call(this, void 0, t), this.x = e, this.s = void 0, this.g = it - 1, this.f = 4;
}
lt.prototype = new z(), lt.prototype.h = function() {
	if (this.f &= -3, 1 & this.f) return !1;
	if ((36 & this.f) == 32 || (this.f &= -5, this.g === it)) return !0;
	if (this.g = it, this.f |= 1, this.i > 0 && !ot(this)) return this.f &= -2, !0;
	var e = L;
	try {
		st(this), L = this;
		var t = this.x();
		(16 & this.f || this.v !== t || this.i === 0) && (this.v = t, this.f &= -17, this.i++);
	} catch (e) {
		this.v = e, this.f |= 16, this.i++;
	}
	return L = e, ct(this), this.f &= -2, !0;
}, lt.prototype.S = function(e) {
	if (this.t === void 0) {
		this.f |= 36;
		for (var t = this.s; t !== void 0; t = t.n) t.S.S(t);
	}
	z.prototype.S.call(this, e);
}, lt.prototype.U = function(e) {
	if (this.t !== void 0 && (z.prototype.U.call(this, e), this.t === void 0)) {
		this.f &= -33;
		for (var t = this.s; t !== void 0; t = t.n) t.S.U(t);
	}
}, lt.prototype.N = function() {
	if (!(2 & this.f)) {
		this.f |= 6;
		for (var e = this.t; e !== void 0; e = e.x) e.t.N();
	}
}, Object.defineProperty(lt.prototype, "value", { get: function() {
	if (1 & this.f) throw Error("Cycle detected");
	var e = at(this);
	if (this.h(), e !== void 0 && (e.i = this.i), 16 & this.f) throw this.v;
	return this.v;
} });
function ut(e, t) {
	return new lt(e, t);
}
function dt(e) {
	var t = e.j;
	if (e.j = void 0, typeof t == "function") {
		R++;
		var n = L;
		L = void 0;
		try {
			t();
		} catch (t) {
			throw e.f &= -2, e.f |= 8, ft(e), t;
		} finally {
			L = n, Ye();
		}
	}
}
function ft(e) {
	for (var t = e.s; t !== void 0; t = t.n) t.S.U(t);
	e.x = void 0, e.s = void 0, dt(e);
}
function pt(e) {
	if (L !== this) throw Error("Out-of-order effect");
	ct(this), L = e, this.f &= -2;
	try {
		8 & this.f && ft(this);
	} finally {
		Ye();
	}
}
function mt(e, t) {
	this.x = e, this.j = void 0, this.s = void 0, this.u = void 0, this.f = 32, this.name = t?.name, Ze && Ze.push(this);
}
mt.prototype.c = function() {
	var e = this.S();
	try {
		if (8 & this.f || this.x === void 0) return;
		var t = this.x();
		typeof t == "function" && (this.j = t);
	} finally {
		e();
	}
}, mt.prototype.S = function() {
	if (1 & this.f) throw Error("Cycle detected");
	this.f |= 1, this.f &= -9, dt(this), st(this), R++;
	var e = L;
	return L = this, pt.bind(this, e);
}, mt.prototype.N = function() {
	2 & this.f || (this.f |= 2, this.u = $e, $e = this);
}, mt.prototype.d = function() {
	this.f |= 8, 1 & this.f || ft(this);
}, mt.prototype.dispose = function() {
	this.d();
};
function ht(e, t) {
	var n = new mt(e, t);
	try {
		n.c();
	} catch (e) {
		throw n.d(), e;
	}
	var r = n.d.bind(n);
	return r[Symbol.dispose] = r, r;
}
// node_modules/@preact/signals/dist/signals.module.js
var gt, _t, vt, yt = typeof window < "u" && !!window.__PREACT_SIGNALS_DEVTOOLS__, bt = [], xt = [];
ht(function() {
	gt = this.N;
})();
function St(e, t) {
	f[e] = t.bind(null, f[e] || function() {});
}
function Ct(e) {
	if (vt) {
		var t = vt;
		vt = void 0, t();
	}
	vt = e && e.S();
}
function wt(e) {
	var t = this, n = e.data, r = V(n);
	r.name = "ReactiveDom", r.value = n;
	var i = ze(function() {
		for (var e = t, n = t.__v; n = n.__;) if (n.__c) {
			n.__c.__$f |= 4;
			break;
		}
		var i = ut(function() {
			var e = r.value.value;
			return e === 0 ? 0 : !0 === e ? "" : e || "";
		}), a = ut(function() {
			return !Array.isArray(i.value) && !m(i.value);
		}), o = ht(function() {
			if (this.N = jt, a.value) {
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
wt.displayName = "ReactiveTextNode", Object.defineProperties(z.prototype, {
	constructor: {
		configurable: !0,
		value: O(A, null).constructor
	},
	type: {
		configurable: !0,
		value: wt
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
}), St("__b", function(e, t) {
	if (Ct(), _t = void 0, typeof t.type == "string") {
		var n, r = t.props;
		for (var i in r) if (i !== "children") {
			var a = r[i];
			a instanceof z && (n || (t.__np = n = {}), n[i] = a, r[i] = a.peek());
		}
	}
	e(t);
}), St("__r", function(e, t) {
	if (e(t), t.type !== A) {
		Ct();
		var n, r = t.__c;
		r && (r.__$f &= -2, (n = r.__$u) === void 0 && (r.__$u = n = function(e, t) {
			var n;
			return ht(function() {
				n = this;
			}, { name: t }), n.c = e, n;
		}(function(e) {
			return function() {
				var t;
				yt && ((t = this.y) == null || t.call(this)), e.__$f |= 1, e.setState({});
			};
		}(r), typeof t.type == "function" ? t.type.displayName || t.type.name : ""))), _t = r, Ct(n);
	}
}), St("__e", function(e, t, n, r) {
	Ct(), _t = void 0, e(t, n, r);
}), St("diffed", function(e, t) {
	Ct(), _t = void 0;
	var n;
	if (typeof t.type == "string" && (n = t.__e)) {
		var r = t.__np, i = t.props, a = n.U;
		if (a) for (var o in a) {
			var s = a[o];
			s === void 0 || r && o in r || (s.d(), a[o] = void 0);
		}
		if (r) for (var c in a || (a = {}, n.U = a), r) {
			var l = a[c], u = r[c];
			l === void 0 ? (l = Tt(n, c, u, i), a[c] = l) : l.o(u, i);
		}
	}
	e(t);
});
function Tt(e, t, n, r) {
	var i = t in e && e.ownerSVGElement === void 0, a = B(n);
	return {
		o: function(e, t) {
			a.value = e, r = t;
		},
		d: ht(function() {
			this.N = jt;
			var n = a.value.value;
			r[t] !== n && (r[t] = n, i ? e[t] = n : n != null && (!1 !== n || t[4] === "-") ? e.setAttribute(t, n) : e.removeAttribute(t));
		})
	};
}
St("unmount", function(e, t) {
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
}), St("__h", function(e, t, n, r) {
	r < 3 && (t.__$f |= 2), e(t, n, r);
}), ie.prototype.shouldComponentUpdate = function(e, t) {
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
function V(e, t) {
	return ze(function() {
		return B(e, t);
	}, []);
}
var Et = typeof requestAnimationFrame > "u" ? setTimeout : function(e) {
	var t = function() {
		clearTimeout(n), cancelAnimationFrame(r), e();
	}, n = setTimeout(t, 35), r = requestAnimationFrame(t);
}, Dt = function(e) {
	queueMicrotask(function() {
		queueMicrotask(e);
	});
};
function Ot() {
	Xe(function() {
		for (var e; e = bt.shift();) gt.call(e);
	});
}
function kt() {
	bt.push(this) === 1 && (f.requestAnimationFrame || Et)(Ot);
}
function At() {
	Xe(function() {
		for (var e; e = xt.shift();) gt.call(e);
	});
}
function jt() {
	xt.push(this) === 1 && (f.requestAnimationFrame || Dt)(At);
}
function H(e, t) {
	var n = I(e);
	n.current = e;
	var r = _t;
	F(function() {
		return ht(function() {
			if (this.N = kt, !(r && 8 & r.__$f)) return n.current();
		}, t);
	}, []);
}
// src/problem.ts
var U = class e extends Error {
	expected;
	got;
	hint;
	gone;
	constructor(e, t, n, r = !1) {
		super(`Expected ${e}; got ${t}. ${Mt(n)}.`), this.expected = e, this.got = t, this.hint = n, this.gone = r;
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
function Mt(e) {
	return e.charAt(0).toUpperCase() + e.slice(1);
}
// src/matrix.ts
function Nt(e, t) {
	let n = e.rows * e.keys, r = e.levels.subarray(t * n, (t + 1) * n), i = Pt(e, e.scales[t] ?? 0), a = new Float32Array(n);
	for (let e = 0; e < n; e++) a[e] = i[r[e] ?? 0] ?? 0;
	return {
		rows: e.rows,
		columns: e.keys,
		values: a
	};
}
function Pt({ most: e, power: t }, n) {
	let r = new Float32Array(e + 2);
	for (let i = 0; i <= e; i++) r[i] = n * (i / e) ** t;
	return r[e + 1] = NaN, r;
}
function Ft(e) {
	let t = e.rows * e.keys, n = new Float32Array(t).fill(NaN);
	for (let r = 0; r < e.heads; r++) {
		let i = Nt(e, r).values;
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
function It(e, t, n) {
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
function Lt(e, t, n) {
	let r = e.values[t * e.columns + n] ?? 0;
	return Number.isNaN(r) ? 0 : r;
}
function Rt(e, t, n) {
	return Number.isNaN(e.values[t * e.columns + n] ?? 0);
}
function zt(e, t) {
	return Array.from({ length: e.columns }, (n, r) => Lt(e, t, r));
}
function Bt(e, t) {
	return Array.from({ length: e.rows }, (n, r) => Lt(e, r, t));
}
function Vt(e) {
	return e.values.reduce((e, t) => t > e ? t : e, 0);
}
function Ht(e, t) {
	let n = [];
	return e.forEach((r, i) => {
		let a = n.findIndex((t) => r > (e[t] ?? 0));
		a >= 0 ? n.splice(a, 0, i) : n.push(i), n.length > t && n.pop();
	}), n;
}
function Ut(e) {
	return e.map((e, t) => t).sort((t, n) => (e[n] ?? 0) - (e[t] ?? 0) || t - n);
}
// src/share.ts
function W(e) {
	return e === 0 ? "0 %" : e < .01 ? "<1 %" : `${Math.round(e * 100)} %`;
}
function Wt(e) {
	return e < .01 ? "" : String(Math.round(e * 100));
}
function G(e) {
	return e === 0 ? "0 %" : e < .001 ? "<0.1 %" : `${(e * 100).toFixed(1)} %`;
}
// src/scale.ts
var Gt = [
	["root", "0–100 %, by the root"],
	["absolute", "0–100 %"],
	["map", "up to the largest of the map"],
	["row", "up to the largest of each row"],
	["uniform", "times the even share, 1/n"]
];
function Kt(e, t, n) {
	if (e === "root") return (e) => Math.sqrt(Math.min(e, 1));
	if (e === "absolute") return (e) => Math.min(e, 1);
	if (e === "uniform") return (e) => Math.sqrt(Math.min(e * n, 16) / 16);
	if (e === "map") {
		let e = Vt(t);
		return (t) => e > 0 ? t / e : 0;
	}
	let r = qt(t);
	return (e, t) => (r[t] ?? 0) > 0 ? e / (r[t] ?? 1) : 0;
}
function qt({ rows: e, columns: t, values: n }) {
	let r = new Float32Array(e);
	for (let e = 0; e < n.length; e++) {
		let i = Math.floor(e / t), a = n[e] ?? 0;
		a > (r[i] ?? 0) && (r[i] = a);
	}
	return r;
}
function Jt(e, t) {
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
	].map((e) => n(Math.sqrt(e), W(e))) : e === "absolute" ? [
		0,
		.25,
		.5,
		.75,
		1
	].map((e) => n(e, W(e))) : e === "map" ? [n(0, "0 %"), n(1, `${W(t)}, the largest here`)] : e === "row" ? [n(0, "0 %"), n(1, "the largest of its row")] : [
		0,
		1,
		4,
		16
	].map((e) => n(Math.sqrt(e / 16), `${e} ×`));
}
// src/mechanism.ts
function Yt({ answer: e, sheet: t, layer: n, head: r, pinned: i, pointed: a }) {
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
function Xt(e) {
	return 2 ** ((e - 40) / 10);
}
function Zt(e) {
	return Math.min(Math.max(Math.round(40 + 10 * Math.log2(e)), 0), 80);
}
function Qt(e, t, n) {
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
function $t({ keys: e, shown: t, left: n }) {
	let r = new Set(t), i = e.index.flatMap((t, n) => r.has(t) ? [] : [e.hidden[n] === ""]), a = i.filter((e) => e).length;
	return {
		seen: n.seen + a,
		hidden: n.hidden + i.length - a
	};
}
function en({ query: e, energy: t }, n) {
	return e.map((e, r) => {
		let i = n[r] ?? 0;
		return t === null ? (e ?? 0) * i : (t[r] ?? 0) * Math.tanh((e ?? 0) + i);
	});
}
function K(e) {
	if (e === null) return "–";
	let t = Math.abs(e);
	return (t >= 1e5 ? e.toExponential(1).replace("+", "") : e.toFixed(t >= 100 ? 1 : t >= .1 || t === 0 ? 2 : 3)).replace("-", "−");
}
function tn(e) {
	return String(Number(e.toPrecision(3)));
}
function nn(e, t) {
	return Math.abs(e * Math.sqrt(t) - 1) < 1e-4;
}
var rn = {
	scaled: ["Scaled dot product", "q · k"],
	dot: ["Luong’s dot", "q · k"],
	general: ["Luong’s general", "q · W k"],
	additive: ["Additive", "v · tanh(W q + U k)"],
	concat: ["Luong’s concat", "v · tanh(W₁ q + W₂ k)"]
};
function an({ form: e }) {
	return rn[e];
}
function on(e) {
	let [, t] = an(e), n = e.scale === 1 ? t : `${tn(e.scale)} × ${t}`;
	return `score = ${e.softcap === null ? n : `${tn(e.softcap)} × tanh(${n} / ${tn(e.softcap)})`}${e.keys.bias === null ? "" : " + bias"}`;
}
var q = {
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
function sn(e) {
	let t = [], n = (e, n) => {
		n !== null && t.push(`${e}=${encodeURIComponent(n)}`);
	};
	n("text", e.text), n("fp", e.forced.length > 0 ? e.forced.map((e) => e.toString(36)).join(".") : null);
	let r = t.length;
	n("row", e.row), n("l", e.layer), n("h", e.head), n("q", e.view && hn(e.view.rows)), n("k", e.view && hn(e.view.keys)), n("p", e.pinned && vn(e.pinned)), n("o", e.order === q.order ? null : e.order), n("s", e.scale === q.scale ? null : e.scale), n("m", e.statistic), n("sort", e.sorted ? 1 : null);
	let i = e.selected.map(({ layer: e, head: t }) => `${e}.${t}`);
	return n("sel", i.length > 0 ? i.join("_") : null), n("tab", e.tab === q.tab ? null : e.tab), n("d", e.side === "source" ? "s" : null), n("w", e.joined ? 1 : null), n("t", e.threshold === q.threshold ? null : e.threshold), n("x", e.apart ? 1 : null), n("out", e.output), n("wt", e.weight === q.weight ? null : e.weight), n("er", e.erased), n("f", e.factor === q.factor ? null : e.factor), n("u", e.unmasked ? 1 : null), t.length > r && t.splice(r, 0, "v=1"), t.length > 0 ? `#${t.join("&")}` : "";
}
function cn(e) {
	let t = /* @__PURE__ */ new Map();
	for (let n of e.replace(/^#/, "").split("&").filter((e) => e !== "")) {
		let [e = "", ...r] = n.split("=");
		if (!ln.has(e) || t.has(e)) throw xn(n);
		t.set(e, bn(r.join("="), n));
	}
	if (t.has("v") && t.get("v") !== "1") throw xn(`v=${t.get("v")}`);
	let n = (e, n) => {
		let r = t.get(e);
		if (r === void 0) return null;
		let i = n(r);
		if (i === null) throw xn(`${e}=${r}`);
		return i;
	}, [r, i] = [n("q", gn), n("k", gn)];
	if (r === null != (i === null)) throw xn("one of q and k alone");
	return {
		text: t.get("text") || null,
		row: n("row", _n),
		layer: n("l", _n),
		head: n("h", (e) => e === "mean" ? e : _n(e)),
		view: r !== null && i !== null ? {
			rows: r,
			keys: i
		} : null,
		pinned: n("p", yn),
		order: n("o", (e) => e === "weight" ? e : null) ?? q.order,
		scale: n("s", (e) => Gt.find(([t]) => t === e)?.[0] ?? null) ?? q.scale,
		statistic: n("m", (e) => /^[a-z_]{1,40}$/.test(e) ? e : null),
		sorted: n("sort", un) ?? !1,
		selected: n("sel", pn) ?? [],
		tab: n("tab", (e) => /^[a-z]{1,20}$/.test(e) ? e : null),
		side: n("d", (e) => e === "s" ? "source" : null) ?? "target",
		joined: n("w", un) ?? !1,
		threshold: n("t", dn) ?? q.threshold,
		apart: n("x", un) ?? !1,
		output: n("out", _n),
		weight: n("wt", dn) ?? q.weight,
		erased: n("er", _n),
		factor: n("f", (e) => fn(80, e)) ?? q.factor,
		unmasked: n("u", un) ?? !1,
		forced: n("fp", mn) ?? q.forced
	};
}
var ln = /* @__PURE__ */ new Set([
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
function un(e) {
	return e === "1" || null;
}
function dn(e) {
	return fn(100, e);
}
function fn(e, t) {
	let n = _n(t);
	return n !== null && n <= e ? n : null;
}
function pn(e) {
	let t = e.split("_").map((e) => {
		let t = /^(\d{1,9})\.(\d{1,9})$/.exec(e);
		return t === null ? null : {
			layer: Number(t[1]),
			head: Number(t[2])
		};
	});
	return t.length < 6 && t.every((e) => e !== null) ? t : null;
}
function mn(e) {
	return /^[0-9a-z]{1,6}(\.[0-9a-z]{1,6})*$/.test(e) ? e.split(".").map((e) => parseInt(e, 36)) : null;
}
function hn({ from: e, to: t }) {
	return `${e}-${t - 1}`;
}
function gn(e) {
	let t = /^(\d{1,9})-(\d{1,9})$/.exec(e);
	if (t === null) return null;
	let [n, r] = [Number(t[1]), Number(t[2])];
	return n <= r ? {
		from: n,
		to: r + 1
	} : null;
}
function _n(e) {
	return /^\d{1,9}$/.test(e) ? Number(e) : null;
}
function vn({ side: e, index: t, partner: n }) {
	return `${e === "target" ? "t" : "s"}${t}${n === void 0 ? "" : `.${n}`}`;
}
function yn(e) {
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
function bn(e, t) {
	try {
		return decodeURIComponent(e);
	} catch {
		throw xn(t);
	}
}
function xn(e) {
	return new U("a whole link to this page", `a damaged one (${e.length > 60 ? `${e.slice(0, 59)}…` : e})`, "ask for the link again");
}
// src/label.ts
var Sn = "▁", Cn = "Ġ", wn = "##", Tn = /* @__PURE__ */ new Map([
	["<pad>", "⟨padding⟩"],
	["<unk>", "⟨unknown⟩"],
	["<s>", "⟨begin⟩"],
	["</s>", "⟨end⟩"]
]), En = 40, Dn = 32;
function On(e) {
	return Bn(e);
}
function kn(e, t, n = 0) {
	if (e.length !== t) return Array.from({ length: t }, (e, t) => On(String(n + t)));
	let r = An(e), i = e.some((e) => e.startsWith(wn) && e !== wn), a = In(e.map((e) => Fn(e, r === Cn)));
	return e.map((e, t) => {
		let n = Tn.get(e);
		if (n !== void 0) return {
			text: n,
			begins: !0,
			special: !0
		};
		let o = a[t], s = r !== void 0 && e.startsWith(r) ? e.slice(r.length) : e;
		if (o != null) {
			let n = t === 0 || r !== void 0 && e.startsWith(r) || r === void 0;
			return {
				...Hn(r === Cn ? o.text.replace(/^ (?=.)/su, "") : o.text, n),
				...o.note
			};
		}
		if (r === void 0) return i ? Vn(e, t) : Bn(e);
		let c = t === 0 || e.startsWith(r);
		return s === "" ? {
			text: Sn,
			begins: c,
			special: !1
		} : Hn(s, c);
	});
}
function An(e) {
	let t = (t) => e.some((e) => e.startsWith(t));
	return t(Sn) ? Sn : t(Cn) && Nn(e) ? Cn : void 0;
}
var jn = /^[¡-¬®-¿Ģ-Ń]*(?:[!-~ĉĊčĠ]|[Â-ô][¡-¬®-¿Ģ-Ń]+)*[Â-ô]?$/u, Mn = /^<.*>$|^\s*$/su;
function Nn(e) {
	return jn.test(e.filter((e) => !Mn.test(e)).join(""));
}
var Pn = /* @__PURE__ */ new Map();
for (let e = 0, t = 256; e < 256; e++) {
	let n = e >= 33 && e <= 126 || e >= 161 && e !== 173;
	Pn.set(String.fromCharCode(n ? e : t++), e);
}
function Fn(e, t) {
	let n = /^<0x([0-9A-Fa-f]{2})>$/.exec(e)?.[1];
	if (n !== void 0) return [parseInt(n, 16)];
	if (!t || Mn.test(e)) return null;
	let r = Array.from(e, (e) => Pn.get(e));
	return r.every((e) => e !== void 0) ? r : null;
}
function In(e) {
	let t = e.map(() => ""), n = e.map(() => !1), r = [], i = [], a = () => {
		for (let e = 0; e < i.length;) {
			let a = r[e] ?? 0, o = Ln(i[e] ?? 0), s = Rn(i.slice(e, e + o));
			if (o === 0 || s === null) {
				t[a] += `⟨${zn([i[e] ?? 0])}⟩`, e += 1;
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
		note: n[r] ? { whole: `bytes ${zn(e)} of a character` } : {}
	});
}
function Ln(e) {
	return e < 128 ? 1 : e >= 194 && e < 224 ? 2 : e >= 224 && e < 240 ? 3 : e >= 240 && e < 245 ? 4 : 0;
}
function Rn(e) {
	try {
		return new TextDecoder("utf-8", {
			fatal: !0,
			ignoreBOM: !0
		}).decode(Uint8Array.from(e));
	} catch {
		return null;
	}
}
function zn(e) {
	return e.map((e) => e.toString(16).toUpperCase().padStart(2, "0")).join(" ");
}
function Bn(e) {
	return Hn(e, !0);
}
function Vn(e, t) {
	let n = e.startsWith(wn) && e !== wn;
	return Hn(n ? e.slice(2) : e, t === 0 || !n);
}
function Hn(e, t) {
	let n = qn(e), r = Array.from(n.slice(0, 160));
	return r.length <= En ? {
		text: n,
		begins: t,
		special: !1
	} : {
		text: `${r.slice(0, Dn).join("")}…`,
		begins: t,
		special: !1,
		whole: n
	};
}
var Un = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;
function Wn(e) {
	let t = e.filter((e) => !e.special).map((e) => e.text), n = /\p{L}/u.exec(t.join(" "))?.[0] ?? "";
	return Un.test(n) ? "rtl" : "ltr";
}
function J(e) {
	return `\u2068${e}\u2069`;
}
var Gn = /* @__PURE__ */ new Map([
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
]), Kn = /[\p{Cc}\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]|^[\u200c\u200d]+$|^[\u00a0\u3000]$/gu;
function qn(e) {
	let t = e.replace(Kn, (e) => Array.from(e, (e) => `⟨${Gn.get(e) ?? Jn(e)}⟩`).join(""));
	return t.trim() === "" ? "␣" : t;
}
function Jn(e) {
	return `U+${(e.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
}
// src/joining.ts
var Yn = "Pieces joined to words: over the pieces of a word that is looked at the weights are summed, over those of a word that looks their mean is taken.", Xn = /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u, Zn = /^…/u;
function Qn(e) {
	let t = [];
	return e.forEach((n, r) => {
		let i = t.at(-1), a = n.begins || n.special || Xn.test(n.text), o = e[r - 1]?.special === !0;
		i === void 0 || o || a && !Zn.test(n.text) ? t.push({
			from: r,
			to: r + 1
		}) : i.to = r + 1;
	}), t;
}
function $n(e) {
	return Array.from({ length: e }, (e, t) => ({
		from: t,
		to: t + 1
	}));
}
function er(e, t) {
	return t.map(({ from: t, to: n }) => {
		let r = e.slice(t, n), [i] = r;
		return i !== void 0 && r.length === 1 ? i : {
			text: r.map((e) => e.text).join("").replace(/…{2,}/gu, ""),
			begins: !0,
			special: i?.special ?? !1
		};
	});
}
function tr(e, t, n) {
	let r = new Float32Array(t.length * n.length), i = Array.from({ length: e.rows }, (t, n) => nr(e, n));
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
function nr({ values: e, columns: t }, n) {
	for (let r = 0; r < t; r++) if (!Number.isNaN(e[n * t + r] ?? NaN)) return !0;
	return !1;
}
function rr(e, t) {
	let [n, r] = [0, e.length - 1];
	for (; n < r;) {
		let i = n + r + 1 >> 1;
		(e[i]?.from ?? 0) <= t ? n = i : r = i - 1;
	}
	return n;
}
// src/sheet.ts
var ir = 1 << 26;
function ar(e, t) {
	return r(t) && e.queries * e.keys > ir;
}
function or(t, n, r, i) {
	let a = t.rows * t.keys, o = {
		...t,
		heads: 1,
		scales: t.scales.slice(i, i + 1),
		levels: t.levels.slice(i * a, (i + 1) * a)
	}, s = e(n);
	return {
		layer: r,
		excerpt: s,
		tile: o,
		head: i,
		coarse: !0,
		preview: !0,
		rows: lr(s.rows, o.rows),
		keys: lr(s.keys, o.keys)
	};
}
var sr = 1 << 22;
async function cr(e, t, { layer: i, index: a, head: o }, s, c) {
	let l = r(s), u = i.heads * n(s.rows) * n(s.keys), d = l || u > sr ? Math.min(o ?? 0, i.heads - 1) : null, f = {
		excerpt: s,
		head: d
	}, [p, m] = await Promise.all([e.tile(t, a, f, c), l ? {
		rows: [],
		keys: []
	} : e.tokens(t, a, s, c)]), h = (e, t, n) => l || p.pyramidLevel > 0 ? lr(e, n) : kn(t, e.to - e.from, e.from);
	return {
		layer: a,
		excerpt: s,
		tile: p,
		head: d,
		coarse: l || p.pyramidLevel > 0,
		preview: !1,
		rows: h(s.rows, m.rows, p.rows),
		keys: h(s.keys, m.keys, p.keys)
	};
}
function lr(e, t = n(e)) {
	return Array.from({ length: t }, (n, r) => {
		let { from: a, to: o } = i(e, r, t);
		return On(o - a === 1 ? `${a}` : `${a}–${o - 1}`);
	});
}
// src/grid-layout.ts
var ur = 3, dr = 12, fr = 44, pr = 22, mr = 30;
function hr(e) {
	let t = /* @__PURE__ */ new Map();
	return e.forEach(({ sheet: e }, n) => {
		t.set(e, [...t.get(e) ?? [], n]);
	}), [...t];
}
function gr({ title: e, sheet: t }) {
	let n = /^(?:encoder|decoder|layer) (\d+)(?: · \w+)?$/.exec(e)?.[1];
	return n === void 0 ? e === t ? "" : e : n;
}
function _r(e, t, n, r = null) {
	let i = e.reduce((e, t) => Math.max(e, t.heads), 1), a = r === null ? e.map((e) => Math.min(n(gr(e)), t / 3)) : [], o = a.some((e) => e > 0) ? Math.max(mr, Math.max(...a) + 8) : 0, s = Math.floor((t - o) / i) - ur, c = Math.min(Math.max(s, dr), fr), l = c + ur, u = [], d = [], f = 0;
	if (r !== null) {
		let e = Math.max(1, Math.floor((t + ur) / l));
		r.forEach((t, n) => {
			let [r, i] = [Math.floor(n / e), n % e];
			u.push({
				...t,
				x: i * l,
				y: r * l
			});
		}), f = Math.ceil(r.length / e) * l;
	} else for (let [t, n] of hr(e)) {
		t !== "" && (d.push({
			text: t,
			x: 0,
			y: f + pr / 2,
			heading: !0
		}), f += pr);
		for (let t of n) {
			let n = e[t];
			if (n !== void 0) {
				d.push({
					text: gr(n),
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
function vr({ thumbnails: e, size: t }, n, r) {
	let i = (e, n) => n >= e - ur / 2 && n < e + t + ur / 2;
	return e.find((e) => i(e.x, n) && i(e.y, r)) ?? null;
}
function yr(e, t) {
	return e?.layer === t?.layer && e?.head === t?.head;
}
function br({ thumbnails: e }, t, n) {
	let r = e.find((e) => yr(e, t));
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
function xr(e, t) {
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
var Sr = {
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
	order: q.order,
	scale: q.scale,
	statistic: q.statistic,
	sorted: q.sorted,
	chosen: !1,
	selected: q.selected,
	tab: q.tab,
	side: q.side,
	joined: q.joined,
	threshold: q.threshold,
	apart: q.apart,
	output: q.output,
	weight: q.weight,
	erased: q.erased,
	factor: q.factor,
	unmasked: q.unmasked,
	forced: q.forced
}, Cr = {
	translating: null,
	reading: !1,
	slow: !1,
	problem: null
};
function wr(e, t) {
	return {
		...e,
		...Cr,
		translating: t
	};
}
function Tr(e) {
	return {
		...e,
		reading: !0,
		problem: null
	};
}
function Er(e, t, n, { sheet: r, view: i, overview: a, row: o = null }) {
	let s = r?.layer ?? 0, c = {
		sentence: t,
		row: o,
		answer: n,
		sheet: r,
		view: i,
		overview: a,
		layer: s,
		head: r?.head ?? Vr(e.head, n.layers[s]),
		selected: Br(e.selected, n),
		output: null,
		erased: null,
		forced: q.forced
	};
	return {
		...e,
		...Cr,
		...c,
		pointed: Hr(r, i),
		pinned: null
	};
}
function Dr(e, t) {
	return {
		...e,
		...Cr,
		problem: t
	};
}
function Or(e, t, n, r) {
	let i = n.head ?? Vr(t, e.answer?.layers[n.layer]), a = {
		layer: n.layer,
		head: i
	}, o = Ir(e), s = e.answer?.layers[n.layer], c = o?.queries === s?.queries && o?.keys === s?.keys ? e.sheet : null, l = {
		pointed: Jr(e.pointed, c, n) ?? Hr(n, r),
		pinned: Jr(e.pinned, c, n)
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
function kr(e, t, n) {
	let { sheet: r, pointed: i } = e, a = {
		...e,
		head: t,
		view: n,
		reading: !1
	};
	if (r === null || r.coarse) return a;
	if (i !== null) {
		let { side: e, index: t } = Yr(i, r.excerpt, 1), o = e === "target" ? n.rows : n.keys;
		if (t >= o.from && t < o.to) return a;
	}
	return {
		...a,
		pointed: Hr(r, n)
	};
}
function Ar(e, t) {
	return Ur(e.pointed, t) ? e : {
		...e,
		pointed: t
	};
}
function jr(e, t) {
	return {
		...e,
		pinned: Ur(e.pinned, t) ? null : t,
		pointed: t
	};
}
function Mr(e) {
	return e.pinned === null ? e : {
		...e,
		pinned: null
	};
}
function Nr(e) {
	return e.pinned ?? e.pointed;
}
var Pr = /* @__PURE__ */ new WeakMap();
function Fr(e, t) {
	if (e === null) return null;
	let { tile: n } = e, r = e.head === null ? t : 0, i = Pr.get(n) ?? /* @__PURE__ */ new Map();
	Pr.set(n, i);
	let a = i.get(r) ?? (r === null ? Ft(n) : Nt(n, r));
	return i.set(r, a), a;
}
function Ir(e) {
	return e.answer?.layers[e.layer] ?? null;
}
function Lr(e, t) {
	return e.sheet === null ? !1 : e.sheet.head === null || e.sheet.head === t;
}
function Rr({ layer: e, head: t, selected: n, sheet: r }) {
	let i = t === null || r === null ? [] : [{
		layer: e,
		head: t
	}];
	return [...i, ...n.filter((e) => !i.some((t) => yr(e, t)))];
}
function zr(e, t) {
	let { selected: n, layer: r, head: i } = e;
	if (i !== null && yr(t, {
		layer: r,
		head: i
	})) return e;
	let a = n.filter((e) => !yr(e, t));
	return a.length < n.length ? {
		...e,
		selected: a
	} : {
		...e,
		selected: [...n, t].slice(-5)
	};
}
function Br(e, t) {
	return t === null ? e : e.filter(({ layer: e, head: n }) => n < (t.layers[e]?.heads ?? 0));
}
function Vr(e, t) {
	return e === null || t === void 0 || e >= t.heads ? null : e;
}
function Hr(e, t) {
	return e === null || e.coarse || e.tile.rows === 0 ? null : {
		side: "target",
		index: t === null ? 0 : t.rows.from - e.excerpt.rows.from
	};
}
function Ur(e, t) {
	return e !== null && e.side === t.side && e.index === t.index && e.partner === t.partner;
}
function Wr(t) {
	let { sheet: n, pinned: r, answer: i, view: a } = t, o = n?.excerpt, s = Ir(t), c = s === null || a === null || u(a, e(s));
	return {
		text: t.sentence,
		row: t.row,
		layer: i === null || n === null ? null : t.layer,
		head: i === null || n === null ? null : t.head ?? "mean",
		view: c ? null : a,
		pinned: r === null || o === void 0 ? null : Yr(r, o, 1),
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
function Gr(e, t) {
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
		selected: Br(o, e.answer),
		chosen: v
	};
}
function Kr(e, t) {
	let { sheet: n } = e;
	if (n === null || n.coarse) return e;
	if (t === null) return {
		...e,
		pinned: null
	};
	let r = Yr(t, n.excerpt, -1);
	return qr(r, n) ? {
		...e,
		pinned: r,
		pointed: r
	} : {
		...e,
		pinned: null
	};
}
function qr({ side: e, index: t, partner: n = 0 }, { tile: r }) {
	let [i, a] = e === "target" ? [r.rows, r.keys] : [r.keys, r.rows];
	return t >= 0 && t < i && n >= 0 && n < a;
}
function Jr(e, t, n) {
	if (e === null || t === null || t.coarse || n.coarse) return null;
	let r = Yr(Yr(e, t.excerpt, 1), n.excerpt, -1);
	return qr(r, n) ? r : null;
}
function Yr(e, { rows: t, keys: n }, r) {
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
var Xr = {
	translation: 4e3,
	weights: 500
}, Zr = class {
	door;
	theme;
	address;
	current = B(Sr);
	now = Object.fromEntries(Object.keys(Sr).map((e) => [e, ut(() => this.current.value[e])]));
	get whole() {
		return this.current;
	}
	draft = B("");
	notice = B("");
	map = null;
	spoken = B("");
	weights = ut(() => Fr(this.now.sheet.value, this.now.head.value));
	layer = ut(() => this.now.answer.value?.layers[this.now.layer.value] ?? null);
	reading = ut(() => this.read(this.weights.value));
	heads = ut(() => {
		let [e, t, n, r] = [
			this.now.layer,
			this.now.head,
			this.now.selected,
			this.now.sheet
		];
		return Rr({
			layer: e.value,
			head: t.value,
			selected: n.value,
			sheet: r.value
		});
	});
	others = B(/* @__PURE__ */ new Map());
	othersOf = null;
	othersRequest = new AbortController();
	answerRequest = new AbortController();
	sheetRequest = new AbortController();
	openingRow = null;
	pendingHead = null;
	stopFetching;
	constructor(e, t, n) {
		this.door = e, this.theme = t, this.address = n, this.stopFetching = ht(() => this.fetchOthers(this.heads.value, this.now.sheet.value));
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
		this.current.value = Ar(this.state, e);
	}
	pin(e) {
		this.update(jr(this.state, e));
	}
	unpin() {
		this.update(Mr(this.state));
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
		this.update(zr(this.state, e));
	}
	matrixOf({ layer: e, head: t }) {
		let n = this.now.sheet.value;
		return n === null ? null : e === n.layer && (n.head === null || n.head === t) ? Fr(n, t) : this.others.value.get(`${e} ${t}`) ?? null;
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
			let [t, i] = [$n(n.length), $n(r.length)];
			return {
				matrix: e,
				rows: n,
				keys: r,
				rowSpans: t,
				keySpans: i
			};
		}
		let [i, a] = [Qn(n), Qn(r)];
		return {
			matrix: tr(e, i, a),
			rows: er(n, i),
			keys: er(r, a),
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
		return sn(Wr(this.state));
	}
	async begin(e) {
		try {
			let t = await this.door.model();
			this.update({
				...this.state,
				model: t
			});
			let { link: n, problem: r } = $r(e), i = n.text ?? t.facts.example ?? "";
			t.texts === null ? i !== "" && this.draft.peek() === "" && await this.translate(i, n) : await this.open(n.row ?? 0, n), r !== null && this.update(Dr(this.state, r));
		} catch (e) {
			this.update(Dr(this.state, U.of(e)));
		}
	}
	async follow(e) {
		if (e === sn(Wr(this.state))) return;
		let { link: t, problem: n } = $r(e);
		if (n !== null) return this.update(Dr(this.state, n), !1);
		let { answer: r, sentence: i, row: a, model: o, forced: c } = this.state;
		if (o?.texts !== null && o !== null) {
			if (t.row !== null && t.row !== a) return this.open(t.row, t);
		} else if (t.text !== null && (t.text !== i || t.forced.join() !== c.join())) return this.translate(t.text, t);
		if (this.update(Gr(this.state, t), !1), r === null) return;
		let l = this.state.overview?.statistics.first ?? {
			layer: 0,
			head: 0
		}, u = Math.min(t.layer ?? l.layer, r.layers.length - 1), d = r.layers[u];
		if (d === void 0) return;
		let f = t.head === "mean" ? null : t.head ?? l.head;
		await this.show(u, f, s(t.view, d), !1), this.update(Kr(this.state, t.pinned), !1);
	}
	async translate(e, t = null) {
		if (this.state.model?.texts || (this.draft.value = e, t === null && e === this.state.translating)) return;
		let n = this.restart();
		if (e.trim() === "") {
			let e = new U("a sentence to translate", "an empty one", "type a few words");
			return this.update(Dr(this.state, e));
		}
		this.update(wr(this.state, e)), await this.wait(n, Xr.translation, async () => {
			let r = await this.door.translate(e, t?.forced ?? [], n), i = await this.first(r, t, n);
			return (n) => ei(Er(i.from(n), e, r, i), t);
		});
	}
	choose(e) {
		let { sentence: t } = this.state;
		t !== null && this.translate(t, {
			...Wr(this.state),
			forced: e
		});
	}
	async open(e, t = null) {
		let n = this.restart();
		if (this.openingRow = e, this.update(Tr(this.state)), await this.wait(n, Xr.weights, async () => {
			let r = await this.door.text(e, n), i = await this.first(r, t, n);
			return (n) => ei(Er(i.from(n), null, r, {
				...i,
				row: e
			}), t);
		}), n.aborted) return;
		this.openingRow = null;
		let { sheet: r, layer: i, head: a, view: o } = this.state;
		r?.preview && o !== null && await this.show(i, a, o);
	}
	see(e, t) {
		let n = {
			...this.state,
			chosen: !0
		};
		e === this.state.layer && Lr(this.state, t) ? this.update({
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
		let s = n ?? o(this.state.view, Ir(this.state), a);
		if (this.sheetRequest.abort(), this.shows(e, t, s)) return this.update(kr(this.state, t, s), r);
		this.pendingHead = {
			layer: e,
			head: t
		};
		let { signal: l } = this.sheetRequest = new AbortController(), u = this.preview(a, e, t, s);
		u !== null && this.update(Or(this.state, t, u, s), r), this.update(Tr(this.state), r), await this.wait(l, Xr.weights, async () => {
			let n = await this.sheet(i, e, t, c(s, a), l);
			return (e) => n === null ? e : Or(e, t, n, s);
		}, r), l.aborted || (this.pendingHead = null);
	}
	preview(e, t, n, r) {
		let { overview: i, sheet: a } = this.state;
		return a?.layer === t && Lr(this.state, n) ? null : Qr(i, e, t, n, r);
	}
	shows(e, t, n) {
		let { sheet: r } = this.state;
		return r === null || r.layer !== e || !Lr(this.state, t) || r.preview ? !1 : l(r.excerpt, n) && (!r.coarse || u(r.excerpt, n));
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
		let h = t ? s(t.view, m) : o(this.state.view, Ir(this.state), m);
		return {
			sheet: Qr(l, m, f, p, h) ?? await this.sheet(e, f, p, c(h, m), n),
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
			return Wn(kn(s.keys, s.keys.length)) === "rtl" ? e : [];
		});
		return new Set((await Promise.all(a)).flat());
	}
	async sheet(e, t, n, r, i) {
		let a = e.layers[t];
		return e.map === null || a === void 0 ? null : cr(this.door, e.map, {
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
			e.aborted || this.update(Dr(this.state, U.of(t)));
		} finally {
			clearTimeout(i);
		}
	}
	restart() {
		return this.answerRequest.abort(), this.sheetRequest.abort(), [this.openingRow, this.pendingHead] = [null, null], this.answerRequest = new AbortController(), this.answerRequest.signal;
	}
	stop() {
		this.answerRequest.abort(), this.sheetRequest.abort(), this.othersRequest.abort(), this.stopFetching();
	}
	update(e, t = !0) {
		e !== this.state && (this.current.value = e, t && e.translating === null && !e.reading && this.address?.write(sn(Wr(e))));
	}
	fetchOthers(e, t) {
		let { answer: n } = this.state;
		if ((this.othersOf?.excerpt !== t?.excerpt || this.othersOf?.tile !== t?.tile) && (this.othersRequest.abort(), this.othersRequest = new AbortController(), this.others.value = /* @__PURE__ */ new Map()), this.othersOf = t, n === null || n.map === null || t === null || t.preview) return;
		let { map: r, layers: i } = n, { signal: a } = this.othersRequest, o = i[t.layer];
		for (let { layer: n, head: s } of e) {
			let e = n === t.layer && (t.head === null || t.head === s), c = i[n], l = o?.queries === c?.queries && o?.keys === c?.keys, u = `${n} ${s}`;
			e || !l || this.others.peek().has(u) || this.door.tile(r, n, {
				excerpt: t.excerpt,
				head: s
			}, a).then((e) => {
				a.aborted || (this.others.value = new Map(this.others.peek()).set(u, Nt(e, 0)));
			}, (e) => {
				a.aborted || this.update(Dr(this.state, U.of(e)));
			});
		}
	}
};
function Qr(e, t, n, r, i) {
	let a = e?.tiles[n];
	return a === void 0 || !ar(t, i) ? null : or(a, t, n, Math.min(r ?? 0, t.heads - 1));
}
function $r(e) {
	try {
		return {
			link: cn(e),
			problem: null
		};
	} catch (e) {
		return {
			link: q,
			problem: U.of(e)
		};
	}
}
function ei(e, t) {
	return t === null ? e : Kr(Gr(e, t), t.pinned);
}
// src/panel.ts
var ti = we(null), ni = ti.Provider;
function Y() {
	let e = Be(ti);
	if (e === null) throw Error("a panel outside of an explorer");
	return e;
}
// src/wording.ts
function ri(e) {
	let t = [];
	return e.name && t.push(e.name), e.source_language && e.target_language && t.push(`${oi(e.source_language)} → ${oi(e.target_language)}`), e.attention === "none" ? t.push("no attention") : e.attention && t.push(`${e.attention} attention`), typeof e.parameters == "number" && t.push(`${si(e.parameters)} parameters`), typeof e.bleu == "number" && t.push(`validation BLEU ${e.bleu.toFixed(1)}`), t;
}
function ii(e) {
	return typeof e.bleu == "number" ? `BLEU${e.bleu_sentences ? ` on ${e.bleu_sentences} sentences` : ""}: ${e.bleu_signature ?? "signature unknown"}` : "";
}
function ai(e) {
	return e.map === null && e.blank !== "" ? `There is no looking to show: ${e.blank}.` : "";
}
function oi(e) {
	try {
		return new Intl.DisplayNames(["en"], { type: "language" }).of(e) ?? e;
	} catch {
		return e;
	}
}
function si(e) {
	return e >= 9995e5 ? `${(e / 1e9).toFixed(1)} billion` : e >= 1e6 ? `${(e / 1e6).toFixed(1)} million` : e.toLocaleString("en");
}
function ci(e, t, n, r) {
	let i = Ht(n, 3).filter((e) => (n[e] ?? 0) >= .005).map((e) => `${J(r[e] ?? "")} ${W(n[e] ?? 0)}`), a = e.side === "target" ? "looked at" : "was looked at by";
	return `${J(t)}: ${a} ${i.length > 0 ? i.join(", ") : "nothing in particular"}`;
}
function li({ translated: e, within: t }) {
	return t ? {
		source: "Looked at",
		target: "Looking"
	} : {
		source: "Source",
		target: e ? "Translation" : "Target"
	};
}
var ui = {
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
function di(e) {
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
function fi({ rows: e, keys: t }) {
	let n = ({ from: e, to: t }) => t - e === 1 ? e.toLocaleString("en") : `${e.toLocaleString("en")}–${(t - 1).toLocaleString("en")}`;
	return `rows ${n(e)} × keys ${n(t)}`;
}
function pi(e) {
	return ui[e] ?? e;
}
var mi = {
	normalized_entropy: "entropy",
	max_weight: "largest",
	first_weight: "first",
	last_weight: "last",
	self_weight: "itself",
	previous_weight: "before",
	next_weight: "after"
};
function hi(e) {
	return mi[e] ?? e;
}
function gi(e, t) {
	return /_weight$|^normalized/.test(e) ? W(t) : t.toFixed(2);
}
function _i({ title: e }, t) {
	return `${e}, ${t === null ? "mean of all heads" : `head ${t}`}`;
}
function vi(e, t, n) {
	return e.side === "target" ? `Where “${J(t)}” looked` : `Which ${wi(n)}s looked at “${J(t)}”`;
}
function yi(e, t, n) {
	if (e.side === "target") {
		let e = t.within ? "token" : "source token", r = W(n.reduce((e, t) => e + t, 0));
		return `Of each ${e} here, the share of this ${wi(t)}’s attention; together ${r}.`;
	}
	return `Of each ${t.translated && !t.within ? "word of the translation" : "token"} here, the share of its own attention that went to this one.`;
}
function bi(e, r = null) {
	if (e === null) return "";
	let [i, a] = r ? [r.rows, r.keys] : [n(e.rows), n(e.keys)], o = (e, n) => Math.ceil(t(e) / n).toLocaleString("en");
	if (r?.sampled) {
		let [t, n] = [o(e.rows, i), o(e.keys, a)];
		return `A sample: of ${t} tokens that look, each cell shows one, and its largest weight of up to ${n}.`;
	}
	return `Each cell shows the largest weight of up to ${o(e.rows, i)} × ${o(e.keys, a)}. Click a cell to see its part of the map closer.`;
}
function xi({ translating: e, reading: t, slow: n, model: r }) {
	if (e !== null) {
		let { doing: e } = di(r?.facts.task);
		return n ? `Still ${e.toLowerCase()}. A long text or a large model takes its time…` : `${e}…`;
	}
	return t && n ? "Reading the weights. A long map takes its time…" : "";
}
function Si(e, t) {
	return t === "" ? String(e) : `${e}: ${t}`;
}
function Ci(e, t, n, r) {
	let { source: i, target: a } = li(n), o = `${e} rows (${a.toLowerCase()}), ${t} columns (${i.toLowerCase()})`;
	return r ? `A map of the largest weights: ${o}. The numbers above it show a part of it closer.` : `A map of the weights: ${o}. The rows of words above and the list of numbers beside it say the same.`;
}
function wi(e) {
	return e.translated && !e.within ? "word" : "token";
}
// node_modules/preact/jsx-runtime/dist/jsxRuntime.mjs
var Ti = Symbol.for("pv"), Ei = 0;
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
		constructor: Ti,
		__v: --Ei,
		__i: -1,
		__u: 0
	};
	return (i || a) && (l.__source = i, l.__self = a), f.vnode && f.vnode(l), l;
}
// src/ask-panel.tsx
function Di() {
	let e = Y().now.model.value;
	return e === null ? /* @__PURE__ */ X("div", { class: "ask" }) : e.texts === null ? /* @__PURE__ */ X(Oi, {}) : /* @__PURE__ */ X(ki, { texts: e.texts });
}
function Oi() {
	let e = Y(), t = I(null), n = I(null), r = e.now.model.value?.facts, i = e.draft.value, a = di(r?.task), o = e.now.translating.value !== null;
	return F(() => {
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
function ki({ texts: e }) {
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
					children: Si(t, e)
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
function Ai() {
	let e = Y(), { now: t } = e, n = t.problem.value, r = xi({
		...e.state,
		translating: t.translating.value,
		reading: t.reading.value,
		slow: t.slow.value
	}), i = t.answer.value, a = t.model.value?.facts, o = i === null ? [] : [...i.remarks, ai(i)].filter((e) => e !== "");
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
						children: di(a?.task).result
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
// src/ramp.ts
var ji = zi([
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
]), Mi = zi([
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
]), Ni = Bi([
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
]), Pi = Bi([
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
function Fi(e, t) {
	let n = Math.round(Math.min(Math.max(t, 0), 1) * (e.steps.length - 1));
	return e.steps[n] ?? [
		0,
		0,
		0
	];
}
function Ii([e, t, n]) {
	return `rgb(${e}, ${t}, ${n})`;
}
function Li(e) {
	let t = Ri(e);
	return (t + .05) / .05 >= 1.05 / (t + .05) ? "#000" : "#fff";
}
function Ri(e) {
	let [t, n, r] = e.map((e) => Ui(e / 255));
	return .2126 * t + .7152 * n + .0722 * r;
}
function zi(e, t, n) {
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
		return Vi([
			e[0] + (n[0] - e[0]) * o,
			s[1] + (c[1] - s[1]) * l,
			s[2] + (c[2] - s[2]) * l
		]);
	}) };
}
function Bi(e, t, n) {
	return { steps: Array.from({ length: 255 }, (r, i) => {
		let a = i / 254, o = a < .5 ? e : n, s = Math.abs(2 * a - 1);
		return Vi([
			t[0] + (o[0] - t[0]) * s,
			t[1] + (o[1] - t[1]) * s,
			o[2]
		]);
	}) };
}
function Vi([e, t, n]) {
	let r = t * Math.cos(n * Math.PI / 180), i = t * Math.sin(n * Math.PI / 180), a = (e + .3963377774 * r + .2158037573 * i) ** 3, o = (e - .1055613458 * r - .0638541728 * i) ** 3, s = (e - .0894841775 * r - 1.291485548 * i) ** 3;
	return [
		Hi(4.0767416621 * a - 3.3077115913 * o + .2309699292 * s),
		Hi(-1.2684380046 * a + 2.6097574011 * o - .3413193965 * s),
		Hi(-.0041960863 * a - .7034186147 * o + 1.707614701 * s)
	];
}
function Hi(e) {
	let t = e <= .0031308 ? 12.92 * e : 1.055 * e ** (1 / 2.4) - .055;
	return Math.round(Math.min(Math.max(t, 0), 1) * 255);
}
function Ui(e) {
	return e <= .04045 ? e / 12.92 : ((e + .055) / 1.055) ** 2.4;
}
// src/head-grid.ts
var Wi = 3, Gi = class {
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
			return this.plan && vr(this.plan, e.clientX - n.left, e.clientY - n.top);
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
		yr(e, this.pointed) || (this.pointed = e, this.mark());
	}
	pressed(e) {
		if (e.ctrlKey || e.altKey || e.metaKey || this.plan === null) return;
		let t = this.pointed ?? this.heads?.shown ?? null;
		if (e.key === "Enter" || e.key === " ") {
			if (e.preventDefault(), t === null) return;
			e.key === " " && !yr(t, this.heads?.shown ?? null) ? this.toggle(t) : this.choose(t);
		} else /^(Arrow(Left|Right|Up|Down)|Home|End)$/.test(e.key) && (e.preventDefault(), this.point(br(this.plan, t, e.key)));
	}
	redraw() {
		let { heads: e } = this, t = this.room.clientWidth, n = this.canvas.getContext("2d");
		if (e === null || n === null || t === 0) return;
		let r = this.theme.font;
		n.font = `12px ${r}`;
		let i = (e) => n.measureText(e).width, a = e.sorted && e.statistic !== null ? xr(e.layers, (t) => Ki(e, t)) : null, o = _r(e.layers, t, i, a);
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
		let r = Math.max(...t.thumbnails.map((e) => Ki(n, e) ?? 0), 1e-9);
		e.imageSmoothingQuality = "high";
		for (let i of t.thumbnails) {
			let a = n.statistic === null ? null : Ki(n, i), o = n.statistic === null ? t.size : t.size - Wi - 1;
			e.fillStyle = this.theme.tone("line"), e.fillRect(i.x, i.y, t.size, o);
			let s = this.picture(n, i);
			s !== null && e.drawImage(s, i.x, i.y, t.size, o), a !== null && (e.fillStyle = this.theme.tone("action"), e.fillRect(i.x, i.y + t.size - Wi, a / r * t.size, Wi));
		}
	}
	picture(e, { layer: t, head: n }) {
		let r = `${t} ${n}`, i = this.pictures.get(r);
		if (i !== void 0) return i;
		let [a, o] = [e.overview[t], e.layers[t]];
		if (a === void 0 || o === void 0) return null;
		let s = e.rightToLeft.has(t), c = qi(a, n, e, o.keys, s);
		return this.pictures.set(r, c), c;
	}
	mark() {
		let { heads: e, plan: t } = this, n = this.marks.getContext("2d");
		if (e === null || t === null || n === null) return;
		n.clearRect(0, 0, t.width, t.height);
		let r = (e, r, i) => {
			let a = t.thumbnails.find((t) => yr(t, e));
			a !== void 0 && (n.strokeStyle = i, n.lineWidth = r, n.strokeRect(a.x, a.y, t.size, t.size));
		};
		e.together.forEach((t, n) => r(t, 3, e.colours[n] ?? "")), e.together.length < 2 ? r(e.shown, 3, this.theme.tone("accent")) : r(e.shown, 4, e.colours[0] ?? ""), r(this.pointed, 2, this.theme.tone("ink"));
		let i = this.pointed ?? e.shown, a = i === null ? void 0 : e.layers[i.layer];
		if (i === null || a === void 0) {
			this.readout.textContent = "mean of all heads";
			return;
		}
		let o = Ki(e, i), s = e.statistic === null || o === null ? "" : `: ${pi(e.statistic)} ${gi(e.statistic, o)}`;
		this.readout.textContent = `${_i(a, i.head)}${s}`, this.canvas.title = a.name;
	}
};
function Ki({ statistics: e, statistic: t }, { layer: n, head: r }) {
	return t === null ? null : e.layers[n]?.[t]?.[r] ?? null;
}
function qi(e, t, { ramp: n, scale: r }, i, a) {
	let o = document.createElement("canvas");
	if (e.rows === 0 || e.keys === 0) return o;
	[o.width, o.height] = [e.keys, e.rows];
	let s = Nt(e, t), c = Kt(r, s, i), l = new ImageData(e.keys, e.rows);
	for (let t = 0; t < s.values.length; t++) {
		let r = s.values[t] ?? 0;
		if (Number.isNaN(r)) continue;
		let i = Math.floor(t / e.keys), o = a ? i * e.keys + (e.keys - 1 - t % e.keys) : t;
		l.data.set(Fi(n, c(r, i)), 4 * o), l.data[4 * o + 3] = 255;
	}
	return o.getContext("2d")?.putImageData(l, 0, 0), o;
}
// src/heads-panel.tsx
function Ji() {
	let e = Y(), { now: t, theme: n } = e, r = I(null), i = I(null), a = I(null), o = I(null);
	F(() => {
		r.current !== null && i.current !== null && a.current !== null && (o.current = new Gi(n, r.current, i.current, a.current, ({ layer: t, head: n }) => e.see(t, n), (t) => e.toggle(t)), s());
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
	H(s);
	let c = t.overview.value?.statistics, l = (c?.names ?? []).filter((e) => c?.layers.some((t) => t[e])), u = e.heads.value.length;
	return /* @__PURE__ */ X(A, { children: [
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
						children: pi(e)
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
var Yi = [
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
function Xi({ open: e }) {
	let t = I(null);
	return F(() => {
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
				/* @__PURE__ */ X("table", { children: /* @__PURE__ */ X("tbody", { children: Yi.map(([e, t, n]) => /* @__PURE__ */ X("tr", { children: [
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
function Zi(e) {
	return Qi(e, [...e.keys()], 0);
}
function Qi(e, t, n) {
	let r = (t, n) => e[t]?.tokens[n], i = /* @__PURE__ */ new Map();
	for (let e of t) {
		let t = r(e, n);
		t !== void 0 && i.set(t, [...i.get(t) ?? [], e]);
	}
	return [...i.values()].map((t) => {
		let [i = 0] = t, a = n + 1, o = () => r(i, a) !== void 0 && t.every((e) => r(e, a) === r(i, a));
		for (; o();) a++;
		return {
			text: $i(e[i]?.tokens ?? [], n, a),
			next: Qi(e, t, a),
			leaf: t.find((t) => e[t]?.tokens.length === a) ?? null
		};
	});
}
function $i(e, t, n) {
	return kn(e, e.length).slice(t, n).map(({ text: e, begins: t }, n) => t && n > 0 ? ` ${e}` : e).join("");
}
function ea({ outputs: e }, t, n) {
	return [...e.slice(0, t).map((e) => e.id), n];
}
function ta(e) {
	return e === null ? "−∞" : e.toFixed(2).replace("-", "−");
}
// src/beams-panel.tsx
var na = 20;
function ra() {
	let e = Y(), { now: t, door: n } = e, r = V(null), i = V(""), a = I(null), o = I(!1), s = t.answer.value, c = s?.map ?? null;
	F(() => {
		if (c === null || n.beams === void 0) return;
		let e = new AbortController();
		return n.beams(c, e.signal).then((t) => {
			e.signal.aborted || ([r.value, i.value] = [{
				map: c,
				beams: t
			}, ""]);
		}, (t) => {
			e.signal.aborted || (i.value = U.of(t).message);
		}), () => e.abort();
	}, [c]);
	let l = r.value;
	if (F(() => {
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
						/* @__PURE__ */ X("bdi", { children: $i(m, 0, d.length) }),
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
				children: /* @__PURE__ */ X(ia, {
					branches: Zi(u.hypotheses),
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
				children: /* @__PURE__ */ X(oa, {
					beams: u,
					forced: d.length,
					choose: p
				})
			})
		]
	});
}
function ia({ branches: e, beams: t }) {
	return /* @__PURE__ */ X("ul", { children: e.map(({ text: e, next: n, leaf: r }, i) => {
		let a = r === null ? void 0 : t.hypotheses[r];
		return /* @__PURE__ */ X("li", { children: [/* @__PURE__ */ X("span", {
			class: r === 0 ? "words own" : "words",
			children: [/* @__PURE__ */ X("bdi", { children: e }), a !== void 0 && /* @__PURE__ */ X("span", {
				class: "number",
				"data-hypothesis": r,
				children: [
					"score ",
					ta(a.score),
					" · log p ",
					ta(a.log_probability),
					!a.finished && " · not ended"
				]
			})]
		}), n.length > 0 && /* @__PURE__ */ X(ia, {
			branches: n,
			beams: t
		})] }, i);
	}) });
}
function aa(e) {
	return $i([e], 0, 1);
}
function oa({ beams: e, forced: t, choose: n }) {
	let { now: r } = Y(), i = V(null), { outputs: a } = e, o = r.layer.value, s = r.answer.value?.doubt?.rows[o] === !0 ? r.pinned.value : null, c = s?.side === "target" ? s.index : s?.partner, l = c === void 0 ? null : c + (r.sheet.value?.excerpt.rows.from ?? 0);
	F(() => void (i.value = null), [e, l]);
	let u = Math.ceil(a.length / na), d = Math.min(i.value ?? Math.floor((l ?? 0) / na), u - 1), f = Math.max(d, 0) * na, p = a.slice(f, f + na);
	return /* @__PURE__ */ X(A, { children: [/* @__PURE__ */ X("table", {
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
						children: [/* @__PURE__ */ X("bdi", { children: aa(r.token) }), f + i < t && /* @__PURE__ */ X("small", { children: " (chosen)" })]
					}),
					/* @__PURE__ */ X("td", { children: G(Math.exp(r.log_probability ?? -Infinity)) }),
					/* @__PURE__ */ X("td", {
						class: "five",
						children: r.top.map((t) => /* @__PURE__ */ X(sa, {
							output: r,
							one: t,
							choose: () => n(ea(e, f + i, t.id))
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
function sa({ output: e, one: t, choose: n }) {
	let r = t.id === e.id, i = /* @__PURE__ */ X(A, { children: [
		/* @__PURE__ */ X("bdi", { children: aa(t.token) }),
		" ",
		W(t.probability)
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
function ca() {
	let e = Y(), { now: t, theme: n } = e;
	n.changes.value;
	let r = t.answer.value?.layers ?? [], i = e.heads.value;
	return /* @__PURE__ */ X(A, { children: [/* @__PURE__ */ X("ul", {
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
					_i(a, t.head),
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
var la = .25;
function ua(e) {
	let { rows: t, columns: n, values: r } = e, i = new Float64Array(n), a = 0;
	for (let e = 0; e < t * n; e++) {
		let t = r[e] ?? NaN;
		Number.isNaN(t) || (i[e % n] = (i[e % n] ?? 0) + t, a += t);
	}
	let o = Math.max(la, Math.min(4 / n, 1)) * a;
	return a === 0 ? [] : [...i.keys()].filter((e) => (i[e] ?? 0) >= o);
}
function da(e, t, n = /* @__PURE__ */ new Set()) {
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
			if (Rt(e, s, t)) continue;
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
function fa(e, t = /* @__PURE__ */ new Set()) {
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
function pa(e, t) {
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
function ma(e, t, n) {
	let { normalized_entropy: r, max_weight: i, queries: a } = e;
	if (a === 0 || Number.isNaN(r)) return [`${t} has no query that looks at anything${n ? " that is not set aside" : ""}.`];
	let o = [`${t} is ${r < .35 ? "sharp" : r > .8 ? "diffuse" : "neither sharp nor diffuse"}: its largest weight is ${W(i)} on average, its entropy ${W(r)} of the most.`], [s, c] = [
		[e.previous_weight, "the token before"],
		[e.next_weight, "the token after"],
		[e.self_weight, "the token itself"],
		[e.first_weight, "the first token"],
		[e.last_weight, "the last token"]
	].filter(([e]) => Number.isFinite(e)).reduce((e, t) => t[0] > e[0] ? t : e, [0, ""]);
	return s >= .3 ? o.push(`It looks mostly at ${c}: ${W(s)} of its attention.`) : Number.isFinite(e.distance) ? o.push(`It looks ${e.distance.toFixed(1)} tokens away on average, at no one place first of all.`) : o.push("It looks at no one place first of all."), n && o.push(`Set aside were ${W(1 - e.left)} of its attention.`), o;
}
// src/pen.ts
var ha = 2e4, ga = class {
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
		return `<svg xmlns="http://www.w3.org/2000/svg" ${r} role="img"><title>${ya(n)}</title>${i}${this.parts.join("\n")}</svg>\n`;
	}
	hatch(e) {
		return this.definitions.push(`<pattern id="hatch" width="8" height="8" patternUnits="userSpaceOnUse"><path d="M0 8 8 0M-2 2 2 -2M6 10 10 6" stroke="${ya(e)}"/></pattern>`), "url(#hatch)";
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
		this.definitions.push(`<clipPath id="${e}"><rect ${va(...this.path)}/></clipPath>`), this.group(`clip-path="url(#${e})"`);
	}
	clearRect() {}
	fillRect(e, t, n, r) {
		this.parts.push(`<rect ${va(e, t, n, r)} fill="${ya(String(this.fillStyle))}"/>`);
	}
	strokeRect(e, t, n, r) {
		let i = this.dash.length > 0 ? ` stroke-dasharray="${this.dash.join(" ")}"` : "";
		this.parts.push(`<rect ${va(e, t, n, r)} fill="none" stroke="${ya(String(this.strokeStyle))}" stroke-width="${this.lineWidth}"${i}/>`);
	}
	fillText(e, t, n) {
		let [, r = "", i = "13", a = "sans-serif"] = /^(\d+ )?([\d.]+)px (.*)$/su.exec(this.font) ?? [];
		this.parts.push(`<text x="${Z(t)}" y="${Z(n)}" dy="0.35em" font-family="${ya(a)}" font-size="${i}"${r === "" ? "" : ` font-weight="${r.trim()}"`} text-anchor="${{
			center: "middle",
			right: "end",
			end: "end",
			left: "start",
			start: "start"
		}[this.textAlign]}" fill="${ya(String(this.fillStyle))}">${ya(e)}</text>`);
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
		], l = e.width * e.height, u = l <= ha && _a(e);
		if (!u) {
			this.parts.push(`<image ${va(a, o, s, c)} preserveAspectRatio="none" image-rendering="pixelated" href="${e.toDataURL()}"/>`);
			return;
		}
		let [d, f] = [s / e.width, c / e.height];
		for (let t = 0; t < l; t++) {
			let [n, r, i, s] = u.subarray(4 * t, 4 * t + 4);
			if (s === 0) continue;
			let [c, l] = [t % e.width, Math.floor(t / e.width)];
			this.parts.push(`<rect ${va(a + c * d, o + l * f, d, f)} fill="rgb(${n},${r},${i})" shape-rendering="crispEdges"/>`);
		}
	}
	setLineDash(e) {
		this.dash = e;
	}
	group(e) {
		this.parts.push(`<g ${e}>`), this.opened.push((this.opened.pop() ?? 0) + 1);
	}
};
function _a(e) {
	let t = document.createElement("canvas");
	[t.width, t.height] = [e.width, e.height];
	let n = t.getContext("2d", { willReadFrequently: !0 });
	return n?.drawImage(e, 0, 0), n?.getImageData(0, 0, e.width, e.height).data;
}
function Z(e) {
	return Math.round(e * 1e3) / 1e3;
}
function va(e, t, n, r) {
	return `x="${Z(e)}" y="${Z(t)}" width="${Z(Math.max(n, 0))}" height="${Z(Math.max(r, 0))}"`;
}
function ya(e) {
	return e.replace(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "�").replace(/[&<>"]/g, (e) => `&#${e.charCodeAt(0)};`);
}
// src/painting.ts
function ba({ matrix: e, shade: t }, n) {
	let r = document.createElement("canvas");
	if (e.rows === 0 || e.columns === 0) return r;
	[r.width, r.height] = [e.columns, e.rows];
	let i = new ImageData(e.columns, e.rows);
	for (let r = 0; r < e.values.length; r++) {
		let a = e.values[r] ?? 0;
		if (Number.isNaN(a)) continue;
		let [o, s, c] = Fi(n, t(a, Math.floor(r / e.columns)));
		i.data[4 * r] = o, i.data[4 * r + 1] = s, i.data[4 * r + 2] = c, i.data[4 * r + 3] = 255;
	}
	return r.getContext("2d")?.putImageData(i, 0, 0), r;
}
function xa(e, t) {
	if (e instanceof ga) return e.hatch(t);
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
function Sa(e, t, n) {
	if (e.measureText(t).width <= n) return t;
	let r = Array.from(t.slice(0, 200));
	for (; r.length > 1 && e.measureText(`${r.join("")}…`).width > n;) r.pop();
	return `${r.join("")}…`;
}
function Ca(e, t, n, { x: r, y: i, width: a }, o, s) {
	for (let n = 0; n < 64; n++) e.fillStyle = Ii(Fi(t, n / 63)), e.fillRect(r + n * a / 64, i, a / 64 + .5, 10);
	e.fillStyle = o, e.font = `11px ${s}`, e.textBaseline = "middle", n.forEach(({ share: t, text: o }, s) => {
		let c = n.length === 2 && s === 1;
		e.textAlign = t === 0 ? "left" : c || t === 1 ? "right" : "center", e.fillText(o, r + t * a, i + 20);
	});
}
function wa(e, t, n) {
	let r = Math.max(1, window.devicePixelRatio);
	[e.width, e.height] = [Math.max(Math.round(t * r), 1), Math.max(Math.round(n * r), 1)], e.style.setProperty("width", `${t}px`), e.style.setProperty("height", `${n}px`), e.getContext("2d")?.setTransform(r, 0, 0, r, 0, 0);
}
// src/compare-panel.tsx
function Ta() {
	let e = Y(), { now: t, theme: n } = e, r = n.changes.value, [i, a] = e.heads.value, o = t.answer.value?.layers ?? [], s = e.layer.value, c = t.scale.value;
	if (i === void 0 || a === void 0 || s === null) return /* @__PURE__ */ X("div", {
		class: "compare",
		children: [/* @__PURE__ */ X("div", {
			class: "aside",
			children: [/* @__PURE__ */ X("h3", { children: "Two heads side by side" }), /* @__PURE__ */ X(ca, {})]
		}), /* @__PURE__ */ X("p", {
			class: "hint empty",
			children: "Select a second head in the grid of heads: its map stands here, and the difference of the two."
		})]
	});
	let [l, u] = [e.matrixOf(i), e.matrixOf(a)], d = (e) => {
		let t = o[e.layer];
		return t === void 0 ? "" : _i(t, e.head);
	}, f = t.overview.value?.rightToLeft.has(i.layer) ?? !1;
	if (l === null || u === null || l.values.length !== u.values.length) return /* @__PURE__ */ X("div", {
		class: "compare",
		children: [/* @__PURE__ */ X("div", {
			class: "aside",
			children: [/* @__PURE__ */ X("h3", { children: "Two heads side by side" }), /* @__PURE__ */ X(ca, {})]
		}), /* @__PURE__ */ X("p", {
			class: "hint empty",
			children: e.alike(a) ? "The weights of the second head are on their way." : "The two maps have other rows and keys, so there is no difference to show. Select a head of a layer with the same texts."
		})]
	});
	let { moved: p, correlation: m, matrix: h } = pa(l, u), g = Math.max(h.values.reduce((e, t) => Math.max(e, Math.abs(t) || 0), 0), .01), _ = [
		{
			share: 0,
			text: `−${W(g)}`
		},
		{
			share: .5,
			text: "the same"
		},
		{
			share: 1,
			text: `+${W(g)}`
		}
	];
	return /* @__PURE__ */ X("div", {
		class: "compare",
		children: [
			/* @__PURE__ */ X("div", {
				class: "aside",
				children: [
					/* @__PURE__ */ X("h3", { children: "Two heads side by side" }),
					/* @__PURE__ */ X(ca, {}),
					/* @__PURE__ */ X("p", {
						id: "compared",
						children: [
							"On average ",
							W(p),
							" of a row’s attention would have to move to make the two alike.",
							Number.isFinite(m) && ` Their weights correlate by ${m.toFixed(2).replace("-", "−")}.`
						]
					})
				]
			}),
			/* @__PURE__ */ X(Ea, {
				title: d(i),
				matrix: l,
				ramp: n.ramp,
				shade: Kt(c, l, s.keys),
				ticks: Jt(c, Vt(l)),
				flipped: f,
				changes: r
			}),
			/* @__PURE__ */ X(Ea, {
				title: d(a),
				matrix: u,
				ramp: n.ramp,
				shade: Kt(c, u, s.keys),
				ticks: Jt(c, Vt(u)),
				flipped: f,
				changes: r
			}),
			/* @__PURE__ */ X(Ea, {
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
function Ea({ title: e, matrix: t, ramp: n, shade: r, ticks: i, flipped: a, changes: o }) {
	let { theme: s } = Y(), c = I(null), l = I(null), u = I(null);
	return F(() => {
		let e = () => {
			let [e, o] = [l.current?.getContext("2d"), u.current?.getContext("2d")];
			if (!e || !o || l.current === null || u.current === null || c.current === null) return;
			let [d, f] = [c.current.clientWidth, c.current.clientHeight];
			if (d === 0 || f === 0) return;
			let p = Math.min(d / t.columns, f / t.rows), [m, h] = [t.columns * p, t.rows * p];
			wa(l.current, m, h), e.fillStyle = xa(e, s.tone("line")) ?? s.tone("line"), e.fillRect(0, 0, m, h), a && (e.translate(m, 0), e.scale(-1, 1)), e.imageSmoothingEnabled = !1;
			let g = ba({
				matrix: t,
				excerpt: {
					rows: {
						from: 0,
						to: t.rows
					},
					keys: {
						from: 0,
						to: t.columns
					}
				},
				shade: r,
				scale: "root"
			}, n);
			g.width > 0 && e.drawImage(g, 0, 0, m, h), wa(u.current, d, 28), Ca(o, n, i, {
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
var Da = 26, Oa = 260, ka = 24, Aa = 8, ja = class {
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
	constructor(e) {
		this.list = e;
		for (let e of [this.before, this.after]) e.className = "room", e.ariaHidden = "true";
		e.addEventListener("scroll", () => {
			this.offset = this.each === null ? e.scrollTop : e.scrollLeft, this.render();
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
		let i = Ut(t);
		[this.labels, this.weights, this.shade] = [
			e,
			t,
			r
		], this.indices = n === "weight" ? i : t.map((e, t) => t), this.top = i[0] ?? -1, this.bring();
	}
	bring() {
		let { step: e, size: t, room: n } = this.measures, r = Math.floor(this.indices.indexOf(this.shade?.partner ?? this.top) / t) * e, i = r < this.offset || r + e > this.offset + n, a = Math.max(Math.ceil(this.indices.length / t) * e - n, 0);
		i && (this.offset = Math.min(Math.max(r + e / 2 - n / 2, 0), a)), this.render(), i && this.each === null ? this.list.scrollTop = this.offset : i && (this.list.scrollLeft = this.offset);
	}
	get each() {
		let { width: e, height: t } = this.size;
		return e >= 2 * Oa ? Math.max(Math.floor(t / Da), 1) : null;
	}
	get measures() {
		let { each: e } = this;
		return e === null ? {
			step: Da,
			size: 1,
			room: Math.max(this.size.height, 208)
		} : {
			step: Oa,
			size: e,
			room: this.size.width
		};
	}
	render() {
		let { list: e, indices: t, each: n } = this, { step: r, size: i, room: a } = this.measures, [o, s] = [Math.ceil(t.length / i), n === null ? Aa : 1], c = Math.min(Math.max(Math.floor(this.offset / r) - s, 0), Math.max(o - 1, 0)), l = Math.min(c + Math.ceil(a / r) + 2 * s, o);
		e.classList.toggle("columns", n !== null), e.style.setProperty("--lines", String(i)), e.style.setProperty("grid-template-columns", c > 0 ? `${c * r - ka}px` : "none"), this.before.style.setProperty("--room", `${c * r}px`), this.after.style.setProperty("--room", `${(o - l) * r}px`);
		let u = t.slice(c * i, l * i).map((e, t) => this.line(e, c * i + t, t)), d = [
			...c > 0 ? [this.before] : [],
			...u,
			...l < o ? [this.after] : []
		];
		d.length === this.shown.length && d.every((e, t) => e === this.shown[t]) || e.replaceChildren(...d), this.shown = d;
	}
	line(e, t, n) {
		let { shade: r, weights: i, labels: a } = this, o = i[e] ?? 0, s = this.lines[n] ??= Na();
		s.dataset.index = String(e), s.setAttribute("aria-posinset", String(t + 1)), s.setAttribute("aria-setsize", String(i.length)), s.classList.toggle("top", e === this.top && o > 0), s.classList.toggle("partner", e === r?.partner), s.classList.toggle("special", a[e]?.special ?? !1);
		let [c, l, u] = s.children, d = l.firstElementChild;
		return Ma(c, a[e]?.text ?? ""), Ma(u, G(o)), c.title = a[e]?.whole?.slice(0, 2e4) ?? "", d.style.setProperty("width", `${(o * 100).toFixed(2)}%`), r && d.style.setProperty("background-color", Ii(Fi(r.ramp, r.dark(o, e)))), s;
	}
};
function Ma(e, t) {
	e.textContent !== t && (e.textContent = t);
}
function Na() {
	let e = document.createElement("li");
	e.className = "line";
	let t = (e, t) => {
		let n = document.createElement(e);
		return n.className = t, n;
	}, n = t("span", "track");
	return n.append(t("span", "bar")), e.append(t("bdi", "word"), n, t("span", "number")), e;
}
// src/token-row.ts
var Pa = 120, Fa = class {
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
			let i = this.first + this.from + r, a = e.weights?.[i] ?? null, o = n.lastElementChild, s = a === null ? "" : Wt(a);
			o !== null && o.getAttribute("data-share") !== s && o.setAttribute("data-share", s);
			let c = a === null ? null : Fi(t, e.dark(a, i)), l = c ? Ii(c) : "transparent";
			this.painted[r] !== l && (this.painted[r] = l, n.style.setProperty("background-color", l), n.style.setProperty("color", c ? Li(c) : "")), n.classList.toggle("active", i === e.active), n.classList.toggle("partner", i === e.partner);
			let u = String(i === e.pinned);
			n.ariaPressed !== u && (n.ariaPressed = u);
		});
	}
	build(e) {
		let t = Math.max(this.labels.length - Pa, 0);
		this.from = Math.min(Math.max(e, 0), t), this.painted = [];
		let n = this.labels.slice(this.from, this.from + Pa);
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
		t < 0 || t >= this.labels.length || t >= this.from && t < this.from + this.buttons.length || this.build(t - Math.floor(Pa / 2));
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
function Ia({ matrix: e }, { side: t, index: n }) {
	return t === "target" ? zt(e, n) : Bt(e, n);
}
function La({ rowSpans: e, keySpans: t }, { side: n, index: r, partner: i }) {
	let [a, o] = n === "target" ? [e, t] : [t, e], s = {
		side: n,
		index: rr(a, r)
	};
	return i === void 0 ? s : {
		...s,
		partner: rr(o, i)
	};
}
function Ra(e, t) {
	return (n, r) => e(n, t.side === "target" ? t.index : r);
}
function za(e, t) {
	let n = e.findIndex(({ to: e }) => e > t.from), r = e.findIndex(({ from: e }) => e >= t.to);
	return {
		from: Math.max(n, 0),
		to: r < 0 ? e.length : r
	};
}
function Ba(e) {
	let [t, n] = [e.now.sheet.value, e.now.view.value];
	if (t === null || n === null || e.layer.value?.within !== !0) return !1;
	let r = (e, t) => e.from === t.from && e.to === t.to, { excerpt: i, rows: a, keys: o } = t;
	return !r(i.rows, i.keys) || !r(n.rows, n.keys) ? !1 : a.every((e, t) => e.text === o[t]?.text);
}
function Va() {
	let e = Y(), { now: t } = e, n = t.sheet.value;
	if (n === null) return null;
	let r = Ba(e), i = li(e.kind), a = n.rows.some(({ begins: e }) => !e) || n.keys.some(({ begins: e }) => !e);
	return /* @__PURE__ */ X(A, { children: [
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
					title: Yn,
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
			children: [r ? /* @__PURE__ */ X(Ha, {
				title: "Text",
				side: null,
				id: "target"
			}) : /* @__PURE__ */ X(A, { children: [/* @__PURE__ */ X(Ha, {
				title: i.source,
				side: "source",
				id: "source"
			}), /* @__PURE__ */ X(Ha, {
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
function Ha({ title: e, side: t, id: n }) {
	let r = Y(), i = I(null), a = I(null), o = () => t ?? r.state.side;
	F(() => {
		if (i.current === null) return;
		let e = (e) => {
			let t = r.reading.peek(), n = o() === "target" ? t?.rowSpans : t?.keySpans;
			return {
				side: o(),
				index: n?.[e]?.from ?? e
			};
		};
		a.current = new Fa(i.current, {
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
		let [s, c] = o === "target" ? [e.rows, e.rowSpans] : [e.keys, e.keySpans], l = (o === "target" ? e.keys : e.rows).map(({ text: e }) => e), u = o === "target" ? "rows" : "keys", d = n.excerpt[u].from, f = i?.[u] ?? n.excerpt[u], { from: p, to: m } = za(c, {
			from: f.from - d,
			to: f.to - d
		});
		a.current?.fill(s.slice(p, m), p, Wn(s), (t) => ci({
			side: o,
			index: t
		}, s[t]?.text ?? "", Ia(e, {
			side: o,
			index: t
		}), l));
	}, c = () => {
		let { now: e, theme: n } = r;
		n.changes.value;
		let i = r.reading.value, o = r.layer.value, s = e.pinned.value, c = s ?? e.pointed.value, l = t ?? e.side.value;
		if (i === null || o === null) return;
		let u = c && La(i, c), d = t === null ? u !== null : u?.side === t, f = Kt(e.scale.value, i.matrix, o.keys);
		a.current?.shade({
			weights: u === null || d && t !== null ? null : Ia(i, u),
			dark: u === null ? () => 0 : Ra(f, u),
			active: d ? u?.index ?? null : null,
			pinned: s !== null && s.side === l ? La(i, s).index : null,
			partner: u === null || d && t !== null ? null : u.partner ?? null
		}, n.ramp);
	};
	return H(s), H(c), /* @__PURE__ */ X(A, { children: [/* @__PURE__ */ X("h3", {
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
var Ua = 3;
function Wa() {
	let e = Y(), t = I(null), n = I(null), r = I(null), i = I(null), a = I(null), o = I(null), { now: s } = e;
	F(() => {
		t.current !== null && (n.current = new ja(t.current)), c();
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
		let h = La(u, d), g = h.side === "target", [_, v, y] = g ? [
			u.rows,
			u.keys,
			u.keySpans
		] : [
			u.keys,
			u.rows,
			u.rowSpans
		], b = _[h.index], x = g ? "keys" : "rows", S = t.excerpt[x].from, ee = c?.[x] ?? t.excerpt[x], { from: C, to: w } = za(y, {
			from: ee.from - S,
			to: ee.to - S
		}), T = Ia(u, h).slice(C, w), E = v.slice(C, w), te = (e, t) => {
			e !== null && ([e.textContent, e.hidden] = [t, t === ""]);
		};
		te(r.current, vi(h, b?.text ?? "", m)), te(i.current, yi(h, m, T)), te(o.current, b?.whole === void 0 ? "" : `In full: ${b.whole}`);
		let ne = Ut(T).slice(0, Ua).filter((e) => (T[e] ?? 0) >= .005).map((e) => `${J(E[e]?.text ?? "")} ${W(T[e] ?? 0)}`);
		te(a.current, ne.length > 0 ? `Most: ${ne.join(", ")}.`.replace(/ %/g, "\xA0%") : "");
		let D = Ra(Kt(f, u.matrix, l.keys), h);
		n.current?.draw(E, T, p, {
			ramp: e.theme.ramp,
			dark: (e, t) => D(e, t + C),
			partner: h.partner === void 0 ? null : h.partner - C
		});
	};
	H(c);
	let l = s.sheet.value?.coarse ?? !0;
	return /* @__PURE__ */ X(A, { children: [/* @__PURE__ */ X("p", {
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
function Ga(e, t = null) {
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
		erased: l === null ? qa(n, i, _, t, r?.excerpt.keys.from ?? 0) : Ka(l, u.source.length)
	};
}
function Ka(e, t) {
	return e < t ? {
		from: e,
		to: e + 1
	} : null;
}
function qa(e, t, n, r, i) {
	if (n === null || r === null || e.doubt?.keys[t] !== !0) return null;
	let a = r.find((e) => n - i >= e.from && n - i < e.to);
	return a === void 0 ? null : {
		from: a.from + i,
		to: a.to + i
	};
}
function Ja(e, { layer: t, head: n, output: r, row: i }) {
	return [
		e,
		t,
		n,
		r,
		i
	].join(" ");
}
function Ya(e) {
	if (e == null) return "−∞";
	let t = Math.abs(e), n = t >= 9.995 ? t.toFixed(1) : t.toFixed(2);
	return Number(n) === 0 ? "0.00" : `${e < 0 ? "−" : "+"}${n}`;
}
function Xa(e) {
	return Math.abs(e) < .005 && e !== 0 ? e < 0 ? "−0.00" : "+0.00" : Ya(e);
}
function Za({ name: e }, t, n, { doubt: r }, i) {
	if (e === "permuted") return `permuted, ${t.draws} draws`;
	if (e === "weight") return `“${J(i.key(t.key))}” ${G(t.weights[t.key] ?? 0)} → ${W(n.weight)}`;
	if (e !== "erased") return e === "adversary" ? "other weights" : e;
	let [a, o] = t.erased ?? [0, 0];
	return `without “${J(Qa((r?.source.slice(a, o) ?? []).join("")))}”`;
}
function Qa(e) {
	return e.replace(/[▁Ġ]/g, " ").trim() || e;
}
function $a({ divergence: e, at_most: t, distance: n, whole: r }) {
	let i = t > 0 ? Math.round(100 * e / t) : 0;
	return `${r ? "All rows of the head" : "This row"} look elsewhere: ${e.toFixed(2)} nats of at most ${t.toFixed(2)} (${i} %, Jensen–Shannon). The output moves by ${G(n)} of probability at the most.`;
}
var eo = 40;
function to({ weights: e, seen: t, gradient: n }) {
	let r = e.flatMap((e, r) => t[r] === !0 ? [{
		key: r,
		weight: e,
		gradient: n?.[r] ?? null
	}] : []), i = Math.max(...r.map(({ gradient: e }) => Math.abs(e ?? 0)), 1e-12), a = (e) => Math.max(e.weight, Math.abs(e.gradient ?? 0) / i), o = [...r].sort((e, t) => a(t) - a(e)).slice(0, eo);
	return {
		shown: o.sort((e, t) => e.key - t.key),
		left: r.length - o.length
	};
}
// src/doubt-panel.tsx
var no = 120, ro = 60;
function io() {
	let e = Y(), { now: t, door: n } = e, r = t.answer.value, i = V(null), a = V(null), o = V(null), s = V(""), c = V(!1), l = I(new AbortController()), u = e.reading.value, d = Ga({
		answer: r,
		sheet: t.sheet.value,
		layer: t.layer.value,
		head: t.head.value,
		pinned: t.pinned.value,
		output: t.output.value,
		weight: t.weight.value,
		erased: t.erased.value
	}, t.joined.value ? u?.keySpans ?? null : null);
	F(() => {
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
				e.signal.aborted || ([s.value, c.value] = [U.of(t).message, !1]);
			});
		}, i.peek() === null ? 0 : no);
		return () => {
			clearTimeout(t), e.abort();
		};
	}, [d === null ? "" : JSON.stringify([r?.map, d])]);
	let f = d === null || r?.map == null ? "" : Ja(r.map, d);
	if (F(() => () => {
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
			e.aborted || ([s.value, o.value] = [U.of(t).message, null]);
		});
	};
	return /* @__PURE__ */ X("div", {
		class: "doubt",
		children: [/* @__PURE__ */ X("div", {
			class: "aside",
			children: [
				/* @__PURE__ */ X("h3", { children: [
					"Does the output need ",
					p === void 0 ? "this head" : _i(p, d.head),
					"?"
				] }),
				/* @__PURE__ */ X("label", { children: [
					"Output",
					" ",
					/* @__PURE__ */ X(ao, {
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
					/* @__PURE__ */ X(ao, {
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
		}) : /* @__PURE__ */ X(A, { children: [/* @__PURE__ */ X("div", {
			class: c.value ? "table-room stale" : "table-room",
			tabIndex: 0,
			role: "region",
			"aria-label": "What the output becomes",
			"aria-busy": c.value,
			children: [
				/* @__PURE__ */ X(oo, {
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
					children: o.value === f ? /* @__PURE__ */ X(A, { children: [
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
						children: $a(v)
					})
				})
			]
		}), /* @__PURE__ */ X(co, {
			..._,
			names: g,
			other: v
		})] })]
	});
}
function ao({ id: e, names: t, value: n, choose: r }) {
	let i = Math.min(Math.max((n ?? 0) - ro / 2, 0), Math.max(t.length - ro, 0));
	return /* @__PURE__ */ X("select", {
		id: e,
		value: n === null ? "" : String(n),
		onChange: (e) => {
			e.currentTarget.value !== "" && r(Number(e.currentTarget.value));
		},
		children: [n === null && /* @__PURE__ */ X("option", {
			value: "",
			children: "nothing yet"
		}), t.slice(i, i + ro).map((e, t) => /* @__PURE__ */ X("option", {
			value: String(i + t),
			children: [
				i + t,
				": ",
				J(Qa(e))
			]
		}, i + t))]
	});
}
function oo({ asked: e, effects: t, names: n, other: r }) {
	let i = Y().now.answer.value;
	if (i === null) return null;
	let a = [...t.changes, ...r?.changes ?? []];
	return /* @__PURE__ */ X("table", {
		id: "effects",
		children: [
			/* @__PURE__ */ X("caption", { children: [
				"What becomes of the output “",
				/* @__PURE__ */ X("bdi", { children: Qa(t.output) }),
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
				/* @__PURE__ */ X("td", { children: G(t.probability) }),
				/* @__PURE__ */ X(so, {
					top: t.top,
					own: t.output
				})
			] }), a.map((r) => /* @__PURE__ */ X("tr", {
				"data-change": r.name,
				children: [/* @__PURE__ */ X("th", {
					scope: "row",
					children: Za(r, t, e, i, n)
				}), r.impossible === void 0 ? /* @__PURE__ */ X(A, { children: [
					/* @__PURE__ */ X("td", { children: [Ya(r.delta), r.spread != null && /* @__PURE__ */ X("small", { children: [" ± ", r.spread.toFixed(2)] })] }),
					/* @__PURE__ */ X("td", { children: G(r.probability ?? 0) }),
					/* @__PURE__ */ X(so, {
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
function so({ top: e, own: t }) {
	return /* @__PURE__ */ X("td", {
		class: "five",
		children: e.map(([e, n], r) => /* @__PURE__ */ X("span", {
			class: e === t ? "own" : void 0,
			children: [
				/* @__PURE__ */ X("bdi", { children: Qa(e) }),
				" ",
				W(n)
			]
		}, r))
	});
}
function co({ asked: e, effects: t, names: n, other: r }) {
	let { shown: i, left: a } = to(t), o = Math.max(...i.map(({ gradient: e }) => Math.abs(e ?? 0)), 1e-12);
	return /* @__PURE__ */ X("figure", {
		class: "slopes",
		tabIndex: 0,
		children: [
			/* @__PURE__ */ X("figcaption", { children: [
				"Row of “",
				/* @__PURE__ */ X("bdi", { children: n.row(e.row) }),
				"”: each ",
				/* @__PURE__ */ X("b", { children: "weight" }),
				r !== null && /* @__PURE__ */ X(A, { children: [", the ", /* @__PURE__ */ X("b", { children: "other weight" })] }),
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
							children: G(i)
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
							children: a === null ? "–" : Xa(a)
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
function lo(e, t, n) {
	let r = [], i = 0, a = e.map((e) => Math.max(e, t) + n);
	for (let e of a) r.push(i), i += e;
	return {
		starts: r,
		sizes: a,
		total: i
	};
}
function uo({ starts: e, total: t }, n) {
	if (n < 0 || n >= t || e.length === 0) return null;
	let [r, i] = [0, e.length - 1];
	for (; r < i;) {
		let t = r + i + 1 >> 1;
		(e[t] ?? 0) <= n ? r = t : i = t - 1;
	}
	return r;
}
function fo({ starts: e, sizes: t }, n) {
	return (e[n] ?? 0) + (t[n] ?? 0) / 2;
}
function po(e, t, n) {
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
var mo = 4e3, ho = 26, go = 110, _o = 20, vo = 120, yo = class {
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
		let t = po(e.heads, e.threshold, mo);
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
		let r = n.getBoundingClientRect(), [i, a] = [e.clientX - r.left, e.clientY - r.top], o = (this.wide ? a / n.clientHeight : i / n.clientWidth) < .5 ? "target" : "source", s = this.place(this.wide ? i + n.scrollLeft : a + n.scrollTop), c = uo(t[o], s - this.shift(o));
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
		let i = fo(n[e], t) + this.shift(e);
		this.wide ? r.scrollLeft = this.place(i) - r.clientWidth / 2 : r.scrollTop = i - r.clientHeight / 2;
	}
	redraw() {
		let { shown: e, room: t } = this, n = this.canvas.getContext("2d"), [r, i] = [t.clientWidth, t.clientHeight];
		if (e === null || n === null || r === 0 || i === 0) return;
		t.classList.toggle("wide", this.wide);
		let a = Math.max(1, window.devicePixelRatio);
		n.font = `13px ${this.theme.font}`;
		let o = (e) => this.wide ? Math.min(n.measureText(e.text).width, go) : 0, s = this.wide ? 14 : _o, c = this.wide ? 8 : 0;
		this.ends = {
			target: lo(e.rows.map(o), s, c),
			source: lo(e.keys.map(o), s, c)
		};
		let l = Math.ceil(this.long);
		this.spacer.style.setProperty("width", this.wide ? `${l}px` : "1px"), this.spacer.style.setProperty("height", this.wide ? "1px" : `${l}px`);
		for (let e of [this.canvas, this.over]) [e.width, e.height] = [Math.round(r * a), Math.round(i * a)], e.style.setProperty("width", `${r}px`), e.style.setProperty("height", `${i}px`), e.getContext("2d")?.setTransform(a, 0, 0, a, 0, 0);
		this.stroke(n, this.lines, 1), this.mark();
	}
	at(e, t) {
		let { ends: n, room: r } = this, i = n === null ? 0 : fo(n[e], t) + this.shift(e);
		return this.wide ? {
			x: this.place(i) - r.scrollLeft,
			y: e === "target" ? ho : r.clientHeight - ho
		} : {
			x: e === "target" ? this.column : r.clientWidth - this.column,
			y: i - r.scrollTop
		};
	}
	get column() {
		return Math.min(vo, this.room.clientWidth / 3);
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
				if (this.wide ? a < -110 || a > n.clientWidth + go : o < -20 || o > n.clientHeight + _o) return;
				e.fillStyle = this.theme.tone(t.special ? "quiet" : "ink"), e.font = `13px ${this.theme.font}`;
				let s = r === "target";
				e.textAlign = this.wide ? "center" : s ? "right" : "left";
				let c = this.wide ? go : this.column - 14, [l, u] = this.wide ? [a, s ? o - 13 : o + 13] : [a + (s ? -8 : 8), o];
				e.fillText(Sa(e, t.text, c), l, u);
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
		this.wide ? r.strokeRect(o - l / 2 + 1, c ? s - ho + 3 : s + 3, l - 2, 20) : r.strokeRect(c ? o - this.column + 2 : o + 4, s - _o / 2, this.column - 6, _o);
	}
};
// src/lines-panel.tsx
function bo() {
	let e = Y(), { now: t, theme: n } = e, r = I(null), i = I(null), a = V(0), o = () => {
		let [n, r, i] = [
			t.sheet.value,
			e.reading.value,
			t.view.value
		];
		if (n === null || r === null) return null;
		let a = (e, t) => {
			let r = n.excerpt[e].from, a = i?.[e] ?? n.excerpt[e];
			return za(t, {
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
	F(() => {
		if (r.current === null) return;
		let t = (t) => {
			let n = e.reading.peek(), { side: r, index: i } = c(t);
			return {
				side: r,
				index: (r === "target" ? n?.rowSpans : n?.keySpans)?.[i]?.from ?? i
			};
		}, o = new yo(n, r.current, {
			point: (n) => {
				e.point(t(n));
				let i = e.reading.peek();
				if (i === null || !r.current?.matches(":focus")) return;
				let a = c(n), [o, s] = n.side === "target" ? [i.rows, i.keys] : [i.keys, i.rows];
				e.spoken.value = ci(a, o[a.index]?.text ?? "", Ia(i, a), s.map(({ text: e }) => e));
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
				matrix: It(i, d, f),
				colour: n.heads[r] ?? ""
			}];
		}), m = [{
			matrix: It(a.matrix, d, f),
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
		let { side: a, index: o } = La(r, n);
		i.current?.point(s({
			side: a,
			index: o
		}, -1));
	};
	H(l), H(u);
	let d = t.sheet.value?.coarse ?? !0;
	return /* @__PURE__ */ X(A, { children: [/* @__PURE__ */ X("p", {
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
				/* @__PURE__ */ X(ca, {}),
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
var xo = 2e3;
function So() {
	let e = Y(), { door: t } = e, n = V(null), r = V(""), i = V(""), a = (t, r = "") => t?.then((t) => {
		[n.value, i.value] = [t, ""], r && (e.spoken.value = r);
	}, (e) => void (i.value = U.of(e).message));
	return F(() => void a(t.notes?.()), []), /* @__PURE__ */ X("div", {
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
					maxLength: xo,
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
var Co = 120;
function wo() {
	let e = Y(), { now: t, door: n } = e, r = V(null), i = V(""), a = V(!1), o = V(null), s = t.answer.value, c = t.sheet.value, l = Yt({
		answer: s,
		sheet: c,
		layer: t.layer.value,
		head: t.head.value,
		pinned: t.pinned.value,
		pointed: t.pointed.value
	});
	F(() => {
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
				e.signal.aborted || ([i.value, a.value] = [U.of(t).message, !1]);
			});
		}, r.peek() === null ? 0 : Co);
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
	let [m, h] = [Xt(t.factor.value), !t.unmasked.value], g = Qt(d, m, h), _ = {
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
						_i(u, f.head)
					] }),
					/* @__PURE__ */ X(To, {
						..._,
						line: b
					}),
					/* @__PURE__ */ X(Eo, { ..._ }),
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
				children: /* @__PURE__ */ X(Do, {
					..._,
					line: b,
					point: (e) => o.value = e
				})
			}),
			/* @__PURE__ */ X(Oo, {
				..._,
				line: b
			})
		]
	});
}
function To({ found: e, result: t, keyName: n, factor: r, line: i }) {
	let [a] = an(e), { scale: o, softcap: s } = e, c = o * r;
	return /* @__PURE__ */ X("div", {
		class: "formula",
		children: [
			/* @__PURE__ */ X("p", { children: [
				a,
				": ",
				/* @__PURE__ */ X("b", { children: on(e) }),
				nn(o, e.width) && o !== 1 && `, where ${tn(o)} = 1 / √${e.width}`
			] }),
			/* @__PURE__ */ X("p", { children: [/* @__PURE__ */ X("b", { children: "weight = e^score / Σ e^score" }), " over the keys that it sees"] }),
			/* @__PURE__ */ X("p", {
				id: "worked",
				children: [
					"“",
					/* @__PURE__ */ X("bdi", { children: n(i.key) }),
					"”:",
					" ",
					i.hidden === "" ? /* @__PURE__ */ X(A, { children: [
						c !== 1 && `${tn(c)} × ${K(i.product)} `,
						s !== null && "capped ",
						i.bias !== null && `+ ${K(i.bias)} `,
						(c !== 1 || s !== null || i.bias !== null) && "= ",
						K(i.score),
						"; e^(",
						K(i.score),
						" − ",
						K(t.sum),
						") = ",
						/* @__PURE__ */ X("b", {
							class: "number",
							children: G(i.weight)
						})
					] }) : `hidden (${i.hidden}), so its weight is 0`
				]
			})
		]
	});
}
function Eo({ found: e, result: t, factor: n, masked: r }) {
	let i = Y(), a = i.now.factor.value, o = nn(e.scale, e.width) ? Zt(Math.sqrt(e.width)) : null, s = e.keys.hidden.some((e) => e !== ""), c = a === 40 ? "as in the model" : `× ${tn(n)}`;
	return /* @__PURE__ */ X(A, { children: [
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
function Do({ asked: e, found: t, result: n, row: r, keyName: i, factor: a, masked: o, line: s, point: c }) {
	let l = Y(), u = new Set(t.shown), d = n.lines.filter(({ key: e }) => u.has(e)), f = $t(t), [, p] = an(t), m = t.scale * a, h = l.now.sheet.value?.excerpt, g = (e) => h !== void 0 && e >= h.keys.from && e < h.keys.to, _ = (t) => {
		h !== void 0 && l.pin({
			side: "target",
			index: e.row - h.rows.from,
			partner: t - h.keys.from
		});
	};
	return /* @__PURE__ */ X(A, { children: [/* @__PURE__ */ X("table", {
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
					children: ["× ", tn(m)]
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
					/* @__PURE__ */ X("td", { children: K(r) }),
					m !== 1 && /* @__PURE__ */ X("td", { children: K(r === null ? null : r * m) }),
					t.keys.bias !== null && /* @__PURE__ */ X("td", { children: K(a) }),
					(t.softcap !== null || t.keys.bias !== null) && /* @__PURE__ */ X("td", { children: K(o) }),
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
							children: G(l)
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
function Oo({ found: e, row: t, keyName: n, line: r, result: i }) {
	let a = Y(), o = V(null), s = e.shown.indexOf(r.key), c = e.vectors[s], l = e.values?.[s], u = e.energy !== null, [d, f] = u ? ["W q", "U k"] : ["q", e.form === "general" ? "W k" : "k"], p = (e, t) => `${e} of “${J(t)}”`;
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
			let l = c === void 0 ? void 0 : en(e, c)[s];
			a.spoken.value = `number ${s}: ${d} ${K(e.query[s] ?? 0)}, ${f} ${K(c?.[s] ?? null)}, together ${K(l ?? null)}`;
		},
		children: [
			/* @__PURE__ */ X("figcaption", { children: [
				"What the score is made of: ",
				e.width,
				" numbers",
				e.width > e.query.length && `, of which the first ${e.query.length} are shown`
			] }),
			/* @__PURE__ */ X(ko, {
				cell: o,
				title: p(d, t),
				numbers: e.query
			}),
			c !== void 0 && /* @__PURE__ */ X(A, { children: [
				/* @__PURE__ */ X(ko, {
					cell: o,
					title: p(f, n(r.key)),
					numbers: c
				}),
				e.energy !== null && /* @__PURE__ */ X(ko, {
					cell: o,
					title: "v",
					numbers: e.energy
				}),
				/* @__PURE__ */ X(ko, {
					cell: o,
					title: `${u ? "v × tanh(W q + U k)" : `${d} × ${f}`}: together ${K(r.product)}`,
					numbers: en(e, c)
				})
			] }),
			l !== void 0 && /* @__PURE__ */ X(ko, {
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
			}) : /* @__PURE__ */ X(ko, {
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
function ko({ title: e, numbers: t, cell: n }) {
	let { theme: r } = Y(), i = I(null), a = t.reduce((e, t) => Math.max(e, Math.abs(t ?? 0)), 0), o = r.changes.value;
	F(() => {
		let e = () => {
			let [e, n] = [i.current, i.current?.getContext("2d")];
			if (e === null || !n) return;
			let [o, s] = [e.parentElement?.clientWidth ?? 0, 18];
			if (o === 0) return;
			wa(e, o, s);
			let c = o / t.length;
			t.forEach((e, t) => {
				n.fillStyle = Ii(Fi(r.differences, .5 + (a === 0 ? 0 : (e ?? 0) / (2 * a)))), n.fillRect(t * c, 0, c > 6 ? c - 1 : c + .5, s);
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
			/* @__PURE__ */ X("small", { children: s === void 0 ? `±${K(a)}` : `${n.value}: ${K(s)}` })
		] }), /* @__PURE__ */ X("div", { children: /* @__PURE__ */ X("canvas", {
			ref: i,
			role: "img",
			"aria-label": `${e}; ${t.slice(0, 8).map((e) => K(e)).join(", ")}${t.length > 8 ? " …" : ""}`,
			onPointerMove: (e) => {
				let r = e.currentTarget.getBoundingClientRect();
				n.value = Math.min(Math.floor((e.clientX - r.left) / r.width * t.length), t.length - 1);
			},
			onPointerLeave: () => n.value = null
		}) })]
	});
}
// src/statistics-panel.tsx
var Ao = [
	"normalized_entropy",
	"max_weight",
	"first_weight",
	"last_weight",
	"self_weight",
	"previous_weight",
	"next_weight",
	"distance"
], jo = 32, Mo = /* @__PURE__ */ new WeakMap();
function No() {
	let e = Y(), { now: t } = e, [n, r, i, a] = [
		t.sheet.value,
		e.layer.value,
		t.answer.value,
		t.overview.value
	], o = e.weights.value;
	if (n === null || r === null || i === null || a === null || o === null) return null;
	let s = t.apart.value && !n.coarse, c = n.head ?? t.head.value, l = r.within ? n.excerpt.rows.from - n.excerpt.keys.from : null, u = new Set(n.keys.flatMap((e, t) => Po(e) ? [t] : [])), d = (e) => /* @__PURE__ */ new Set([...u, ...ua(e)]), f = (e) => {
		let t = Mo.get(e) ?? /* @__PURE__ */ new Map();
		Mo.set(e, t);
		let n = `${l} ${s}`, r = t.get(n) ?? da(e, l, s ? d(e) : void 0);
		return t.set(n, r), r;
	}, p = f(o), m = n.head === null && r.heads > 1, h = c === null ? "The mean of all heads" : `Head ${c}`, g = Math.min(Math.max((c ?? 0) - jo / 2, 0), Math.max(r.heads - jo, 0)), _ = Array.from({ length: Math.min(r.heads, jo) }, (e, t) => g + t), v = a.statistics.layers[n.layer], y = (e, t) => {
		if (!s) return v?.[t]?.[e] ?? NaN;
		let r = m ? Fr(n, e) : e === c ? o : null;
		return r === null ? NaN : f(r)[t];
	}, b = Ao.filter((e) => _.some((t) => Number.isFinite(y(t, e)))), x = s ? [...d(o)].map((e) => n.keys[e]?.text ?? String(e)) : [];
	return /* @__PURE__ */ X("div", {
		class: "statistics",
		children: [
			/* @__PURE__ */ X("div", {
				class: "aside",
				children: [
					/* @__PURE__ */ X("h3", { children: _i(r, c) }),
					/* @__PURE__ */ X("div", {
						id: "interpretation",
						children: n.coarse ? /* @__PURE__ */ X("p", { children: "The map is too long to be read here as a whole; the table has the numbers of all of it." }) : ma(p, h, s).map((e) => /* @__PURE__ */ X("p", { children: e }, e))
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
						children: [x.length > 0 ? `Left out: ${x.slice(0, 8).join(", ")}. ` : "There is none here. ", "A sink is a key that gets a quarter of all attention or more. What remains of each row is divided by its sum."]
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
				}), b.map((e) => /* @__PURE__ */ X("th", {
					scope: "col",
					title: pi(e),
					children: hi(e)
				}, e))] }) }), /* @__PURE__ */ X("tbody", { children: _.map((t) => /* @__PURE__ */ X("tr", {
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
					}), b.map((e) => {
						let n = y(t, e);
						return /* @__PURE__ */ X("td", { children: Number.isFinite(n) ? gi(e, n) : "–" }, e);
					})]
				}, t)) })] }), r.heads > jo && /* @__PURE__ */ X("p", {
					class: "note",
					children: [
						jo,
						" of ",
						r.heads,
						" heads, those around the one that is shown."
					]
				})]
			}),
			!n.coarse && /* @__PURE__ */ X(Fo, {
				matrix: o,
				apart: s ? d(o) : /* @__PURE__ */ new Set()
			})
		]
	});
}
function Po({ special: e, text: t }) {
	return e || /^(\[(CLS|SEP|PAD|MASK|UNK)\]|<\|.*\|>|<(bos|eos|cls|sep|mask)>)$/.test(t);
}
function Fo({ matrix: e, apart: t }) {
	let n = Y(), r = I(null), i = n.now.sheet.value, { entropy: a, received: o } = fa(e, t), s = a.length || 1, c = [...o.keys()].sort((e, t) => (o[t] ?? 0) - (o[e] ?? 0)).slice(0, 3).map((e) => `${i?.keys[e]?.text ?? e} ${W((o[e] ?? 0) / s)}`), l = n.theme.changes.value;
	return F(() => {
		let e = () => Io(r.current, n.theme, o, a);
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
function Io(e, t, n, r) {
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
function Lo(e, t, n, r = () => !0) {
	return {
		id: e,
		title: t,
		accepts: r,
		mount(e, t) {
			return Ce(/* @__PURE__ */ X(ni, {
				value: t,
				children: /* @__PURE__ */ X(n, {})
			}), e), {
				update: () => void 0,
				unmount: () => Ce(null, e)
			};
		}
	};
}
var Ro = [
	Lo("distribution", "Distribution", Wa),
	Lo("lines", "Lines", bo),
	Lo("mechanism", "Mechanism", wo, (e) => e.mechanism !== void 0),
	Lo("statistics", "Statistics", No),
	Lo("compare", "Compare", Ta),
	Lo("doubt", "Doubt", io, (e, t) => e.doubt !== void 0 && t?.doubt != null),
	Lo("beams", "Beams", ra, (e, t) => e.beams !== void 0 && t?.beams === !0),
	Lo("notes", "Notes", So, (e, t, n) => e.notes !== void 0 && n?.notes === !0)
];
function zo() {
	let e = Y(), t = I(null), n = I(null), r = V(!1), i = Ro.filter((t) => t.accepts(e.door, e.now.answer.value, e.now.model.value)), a = i.find(({ id: t }) => t === e.now.tab.value) ?? i[0];
	F(() => {
		if (t.current !== null && a !== void 0) return n.current = {
			id: a.id,
			panel: a.mount(t.current, e)
		}, () => {
			n.current?.panel.unmount(), n.current = null;
		};
	}, [a?.id]), H(() => n.current?.panel.update(e.whole.value)), F(() => {
		let e = t.current?.parentElement?.querySelector(".tabs"), n = e?.querySelector("[aria-selected=true]");
		e && n && (e.scrollLeft = n.offsetLeft + n.offsetWidth - e.offsetLeft - e.clientWidth), r.value && (t.current?.parentElement?.querySelector("[aria-selected=true]"))?.focus();
	}, [a?.id]);
	let o = (t, n) => {
		r.value = n, t !== void 0 && e.set({ tab: t === i[0]?.id ? null : t });
	};
	return /* @__PURE__ */ X(A, { children: [/* @__PURE__ */ X("div", {
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
function Bo(e, t) {
	return `attlas-${e.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 80) || "map"}.${t}`;
}
function Vo(e, t, n, r, i) {
	let a = ["row,row_token,key,key_token,weight"], o = (e) => Ho(e?.whole ?? e?.text ?? "");
	for (let s = r.rows.from; s < r.rows.to; s++) for (let c = r.keys.from; c < r.keys.to; c++) {
		if (Rt(e, s, c)) continue;
		let r = e.values[s * e.columns + c] ?? 0;
		a.push(`${i.row + s},${o(t[s])},${i.key + c},${o(n[c])},${Number(r.toPrecision(6))}`);
	}
	return `${a.join("\r\n")}\r\n`;
}
function Ho(e) {
	return /[",\r\n]|^\s|\s$/.test(e) ? `"${e.replace(/"/g, "\"\"")}"` : e;
}
// src/export.ts
var Uo = 16, Wo = 28, Go = 56, Ko = 288, qo = 2;
function Jo(e) {
	let [t, n] = [e.layer.peek(), e.map?.view ?? null], r = e.state.sheet?.head ?? e.state.head;
	return t === null || n === null ? "" : `${_i(t, r)}, ${fi(n)}`;
}
function Yo(e, t, { width: n, height: r }) {
	let { map: i, theme: a } = e, o = e.weights.peek();
	if (i === null || o === null) return;
	let { scale: s } = e.state;
	t.fillStyle = a.tone("paper"), t.fillRect(0, 0, n, r), t.fillStyle = a.tone("ink"), t.font = `600 13px ${a.font}`, t.textAlign = "left", t.textBaseline = "middle", t.fillText(Jo(e), Uo, 22), t.save(), t.translate(Uo, 44), i.export(t), t.restore();
	let c = r - Uo - Go + 22;
	t.fillStyle = a.tone("quiet"), t.font = `12px ${a.font}`, t.textAlign = "left", t.textBaseline = "middle", t.fillText(`Colours: ${Gt.find(([e]) => e === s)?.[1] ?? s}`, Uo, c - 10), Ca(t, a.ramp, Jt(s, Vt(o)), {
		x: Uo,
		y: c,
		width: Math.min(Ko, n - 32)
	}, a.tone("quiet"), a.font);
}
function Xo(e) {
	let t = e.map?.size ?? null;
	return t && {
		width: Math.max(Math.ceil(t.width), Ko) + 32,
		height: Math.ceil(t.height) + Wo + Go + 32
	};
}
function Zo(e) {
	let t = Xo(e);
	if (t === null) return null;
	let n = new ga();
	return Yo(e, n, t), n.file(t.width, t.height, Jo(e));
}
async function Qo(e) {
	let t = Xo(e), n = document.createElement("canvas"), r = n.getContext("2d");
	return t === null || r === null ? null : ([n.width, n.height] = [t.width * qo, t.height * qo], r.scale(qo, qo), Yo(e, r, t), new Promise((e) => n.toBlob(e, "image/png")));
}
function $o(e) {
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
	return Vo(r, t.rows, t.keys, c, l);
}
function es(e, t) {
	let n = document.createElement("a");
	n.href = URL.createObjectURL(e), n.download = t, n.click(), setTimeout(() => URL.revokeObjectURL(n.href), 1e4);
}
// src/export-menu.tsx
function ts() {
	let e = Y(), t = I(null), n = () => {
		t.current?.open === !0 && (t.current.open = !1, t.current.querySelector("summary")?.focus());
	}, r = async (t) => {
		n();
		let r = Bo(Jo(e), t), i = {
			svg: () => Zo(e),
			csv: () => $o(e),
			png: () => null
		}[t](), a = {
			svg: "image/svg+xml",
			csv: "text/csv;charset=utf-8",
			png: "image/png"
		}[t], o = t === "png" ? await Qo(e) : i === null ? null : new Blob([i], { type: a });
		if (o === null) {
			let t = new U("a map on screen", "none", "show a head first");
			return e.set({ problem: t });
		}
		es(o, r), e.spoken.value = `Saved as ${r}`;
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
var ns = 38, rs = 4;
function is({ queries: e, keys: t }, n) {
	let r = Math.min(n.width / Math.max(t, 1), ns), i = Math.min(n.height / Math.max(e, 1), ns), [a, o] = Math.max(r, i) / Math.min(r, i) <= rs ? [Math.min(r, i), Math.min(r, i)] : [r, i];
	return {
		width: a * t,
		height: o * e
	};
}
function as(e, t, n, r, i) {
	let a = Math.min(r, i / 72), o = Math.min(Math.max((e.to - e.from) / n, a), r);
	return ss(e.from + t * (e.to - e.from) - t * o, o, r);
}
function os(e, t, n, r) {
	let i = e.to - e.from;
	return ss(e.from + t / r * i, i, n);
}
function ss(e, t, n) {
	let r = Math.min(Math.max(e, 0), n - t);
	return {
		from: r,
		to: r + t
	};
}
function cs({ rows: e, keys: t }) {
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
function ls(e, t, n) {
	let r = Math.floor(e.from + t / n * (e.to - e.from));
	return Math.min(Math.max(r, Math.floor(e.from)), Math.ceil(e.to) - 1);
}
function Q(e, t, n) {
	return (t - e.from) / (e.to - e.from) * n;
}
function us(e, t, n) {
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
var ds = 13, fs = 112, ps = 11, ms = 28, hs = 8, gs = 120, _s = 16, vs = 84, ys = class {
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
		e.near.shade === t?.near.shade && e.far?.shade === t.far?.shade && n("ramp") || this.bitmaps.clear(), this.shown !== null && n("layer") && Ts(cs(this.shown), e.view) || (this.shown = e.view), n("layer", "view", "far", "near", "rows", "columns", "ramp") && this.plan !== null ? this.mark() : this.redraw();
	}
	get rightToLeft() {
		return this.picture?.rightToLeft ?? !1;
	}
	cellAt(e, t) {
		let { picture: n, plan: r, shown: i } = this;
		if (n === null || r === null || i === null) return null;
		let [a, o] = [e - r.left, t - r.top];
		if (a < 0 || o < 0 || a >= r.width || o >= r.height) return null;
		let s = this.rightToLeft ? r.width - a : a, { excerpt: c, matrix: l } = n.near, u = Ss(c.rows, l.rows, ls(i.rows, o, r.height)), d = Ss(c.keys, l.columns, ls(i.keys, s, r.width));
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
		i !== null && (xs(n.near) ? this.handlers.click(i) : this.zoom(r, hs));
	}
	enter({ from: e, to: t }) {
		let { plan: n, shown: r } = this;
		if (n === null || r === null) return;
		let i = (e) => this.rightToLeft ? n.width - (e - n.left) : e - n.left, a = (e, t, n, r) => ({
			from: ls(e, Math.max(Math.min(t, n), 0), r),
			to: ls(e, Math.min(Math.max(t, n), r - 1), r) + 1
		});
		this.go({
			rows: a(r.rows, e.y - n.top, t.y - n.top, n.height),
			keys: a(r.keys, i(e.x), i(t.x), n.width)
		});
	}
	wheeled(t) {
		let { picture: n, shown: r } = this;
		if (n === null || r === null) return;
		let { layer: i } = n, a = Ts(cs(r), e(i));
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
			rows: as(a.rows, o(t - i.top, i.height), n, r.layer.queries, i.height),
			keys: as(a.keys, this.rightToLeft ? 1 - s : s, n, r.layer.keys, i.width)
		});
	}
	pan(e, t) {
		let { picture: n, plan: r, shown: i } = this;
		n !== null && r !== null && i !== null && this.go({
			rows: os(i.rows, t, n.layer.queries, r.height),
			keys: os(i.keys, this.rightToLeft ? -e : e, n.layer.keys, r.width)
		});
	}
	go(e) {
		this.shown = e, this.redraw(), clearTimeout(this.settling), this.settling = setTimeout(() => this.handlers.view(cs(e)), gs);
	}
	redraw() {
		let { picture: t, shown: n } = this, r = {
			width: this.room.clientWidth,
			height: this.room.clientHeight
		}, i = this.canvas.getContext("2d");
		if (t === null || n === null || i === null || r.width === 0 || r.height === 0) return;
		i.font = `600 ${ds}px ${this.theme.font}`;
		let a = bs(i, t, r, n);
		this.plan = a;
		let [o, s] = [a.left + a.width + _s, a.top + a.height + 4];
		for (let e of [this.canvas, this.marks]) wa(e, o, s);
		let c = Ts(cs(n), e(t.layer));
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
			width: e.left + e.width + _s,
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
		return this.shown && cs(this.shown);
	}
	paint(e, t, n, r, i) {
		let { rows: a, keys: o } = n.excerpt, s = Q(i.keys, o.from, r.width), c = Q(i.rows, a.from, r.height), l = Q(i.keys, o.to, r.width) - s, u = Q(i.rows, a.to, r.height) - c;
		e.save(), e.translate(r.left, r.top), this.rightToLeft && (e.translate(r.width, 0), e.scale(-1, 1)), e.clearRect(s, c, l, u), e.fillStyle = xa(e, this.theme.tone("line")) ?? this.theme.tone("line"), e.fillRect(s, c, l, u), e.imageSmoothingEnabled = !1;
		let d = this.bitmaps.get(n.matrix) ?? ba(n, t.ramp);
		this.bitmaps.set(n.matrix, d), d.width > 0 && d.height > 0 && e.drawImage(d, s, c, l, u), e.restore();
	}
	write(e, t, n, r, i) {
		let a = n.width / (r.keys.to - r.keys.from), o = n.height / (r.rows.to - r.rows.from), { matrix: s, excerpt: c } = t.near;
		if (Math.min(a, o) < 8 || !xs(t.near)) return;
		e.fillStyle = this.theme.tone("paper");
		let [l, u] = [Cs(c.rows, r.rows), Cs(c.keys, r.keys)];
		for (let t = l.from; t <= l.to; t++) e.fillRect(n.left, n.top + Q(r.rows, t, n.height) - .5, n.width, 1);
		for (let t = u.from; t <= u.to; t++) e.fillRect(this.x(t, n, r) - .5, n.top, 1, n.height);
		if (!(Math.min(a, o) < ms)) {
			e.font = `11px ${i}`, e.textAlign = "center", e.textBaseline = "middle";
			for (let i = l.from; i < l.to; i++) for (let a = u.from; a < u.to; a++) {
				let [o, l] = [i - c.rows.from, a - c.keys.from];
				if (Rt(s, o, l)) continue;
				let u = Lt(s, o, l);
				e.fillStyle = Li(Fi(t.ramp, t.near.shade(u, o)));
				let d = n.top + Q(r.rows, i + .5, n.height);
				e.fillText(Wt(u), this.x(a + .5, n, r), d);
			}
		}
	}
	name(e, t, n, r, i) {
		e.textBaseline = "middle";
		let a = Math.min(n.height / (r.rows.to - r.rows.from), n.width / (r.keys.to - r.keys.from)), o = n.named.rows || n.named.keys ? Math.min(ds, Math.max(a, ps)) : ds, s = (t) => {
			e.font = `${o}px ${i}`, e.fillStyle = this.theme.tone("quiet"), e.fillText(Sa(e, t, fs), 0, 0);
		}, c = (e, t, n, r) => (r ? ws(Cs({
			from: 0,
			to: Infinity
		}, e)) : us(e, t, n)).map((e) => [e, r]);
		for (let [i, a] of c(r.rows, n.height, 24, n.named.rows)) {
			let o = t.rows[i - t.near.excerpt.rows.from]?.text;
			if (a && o === void 0) continue;
			let c = n.top + Q(r.rows, i + .5, n.height);
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
		let r = Q(n.keys, e, t.width);
		return t.left + (this.rightToLeft ? t.width - r : r);
	}
	middleOf({ row: e, column: t }) {
		let { picture: n, plan: r, shown: i } = this;
		if (n === null || r === null || i === null) return null;
		let { rows: a, keys: o } = n.near.excerpt, { matrix: s } = n.near, c = (e, t, n) => e.from + (t + .5) * (e.to - e.from) / n, l = this.x(c(o, t, s.columns), r, i), u = Q(i.rows, c(a, e, s.rows), r.height);
		return {
			x: l,
			y: r.top + u
		};
	}
	mark() {
		let { picture: e, plan: t, shown: n } = this, r = this.marks.getContext("2d");
		e !== null && t !== null && n !== null && r !== null && (r.clearRect(0, 0, t.left + t.width + _s, t.top + t.height + 4), this.drawMarks(r, e, t, n));
	}
	drawMinimap() {
		let { picture: t, shown: n, mini: r } = this;
		r.hidden = !(t !== null && n !== null && !Ts(cs(n), e(t.layer))) || t.far === null;
		let i = r.getContext("2d");
		if (t === null || n === null || t.far === null || r.hidden || i === null) return;
		let { layer: a } = t, o = vs / Math.max(a.queries, a.keys), [s, c] = [Math.max(a.keys * o, 16), Math.max(a.queries * o, 16)];
		wa(r, s, c), this.rightToLeft && (i.translate(s, 0), i.scale(-1, 1));
		let l = this.bitmaps.get(t.far.matrix) ?? ba(t.far, t.ramp);
		this.bitmaps.set(t.far.matrix, l), l.width > 0 && l.height > 0 && i.drawImage(l, 0, 0, s, c);
		let u = (e, t, n) => [e.from / t * n, Math.max((e.to - e.from) / t * n, 4)], [d, f] = u(n.rows, a.queries, c), [p, m] = u(n.keys, a.keys, s);
		i.strokeStyle = this.theme.tone("accent"), i.lineWidth = 2, i.strokeRect(Math.min(p, s - m), Math.min(d, c - f), m, f);
	}
	jump(e) {
		let { picture: t, plan: n, shown: r } = this;
		if (t === null || n === null || r === null || e.buttons === 0) return;
		let i = this.mini.getBoundingClientRect(), [a, o] = [(e.clientX - i.left) / i.width, (e.clientY - i.top) / i.height], s = (e, t, n, r) => os(e, (t * n - (e.from + e.to) / 2) / (e.to - e.from) * r, n, r);
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
			if (!i) return [Q(r.rows, a, n.height) + n.top, Q(r.rows, o, n.height) + n.top];
			let s = [this.x(a, n, r), this.x(o, n, r)];
			return [Math.min(...s), Math.max(...s)];
		}, [m, h] = [p(u, c, !1), p(d, l, !0)];
		m !== null && e.strokeRect(n.left, m[0], n.width, Math.max(m[1] - m[0], 1)), h !== null && e.strokeRect(h[0], n.top, Math.max(h[1] - h[0], 1), n.height), m !== null && h !== null && (e.lineWidth = 3, e.strokeRect(h[0], m[0], Math.max(h[1] - h[0], 1), Math.max(m[1] - m[0], 1))), e.restore();
	}
};
function bs(e, t, n, r) {
	let i = xs(t.near), a = (t) => t.reduce((t, { text: n }) => Math.max(t, Math.min(e.measureText(n).width, fs)), 0), o = e.measureText(t.layer.queries.toLocaleString("en")).width, s = (e, r) => {
		let i = Math.ceil(Math.max(e ? a(t.rows) : 0, o) + 12), s = Math.ceil((r ? a(t.columns) : ds) + 14), c = Math.max(n.width - i - _s, 40);
		return {
			left: i,
			top: s,
			...is(t.layer, {
				width: c,
				height: Math.max(n.height - s - 4, 40)
			})
		};
	}, c = s(i, i), l = {
		rows: i && c.height / (r.rows.to - r.rows.from) >= ps,
		keys: i && c.width / (r.keys.to - r.keys.from) >= ps
	};
	return {
		...s(l.rows, l.keys),
		named: l
	};
}
function xs({ matrix: e, excerpt: t }) {
	let { rows: n, keys: r } = t;
	return n.to - n.from === e.rows && r.to - r.from === e.columns;
}
function Ss(e, t, n) {
	if (n < e.from || n >= e.to) return null;
	let r = e.to - e.from;
	return Math.floor(((n - e.from + 1) * t - 1) / r);
}
function Cs(e, t) {
	return {
		from: Math.max(e.from, Math.floor(t.from)),
		to: Math.min(e.to, Math.ceil(t.to))
	};
}
function ws({ from: e, to: t }) {
	return Array.from({ length: Math.max(t - e, 0) }, (t, n) => e + n);
}
function Ts(e, t) {
	let n = (e, t) => e.from === t.from && e.to === t.to;
	return n(e.rows, t.rows) && n(e.keys, t.keys);
}
function Es(e, t) {
	return t.partner === void 0 ? null : t.side === "target" ? Lt(e, t.index, t.partner) : Lt(e, t.partner, t.index);
}
// src/map-panel.tsx
function Ds() {
	let e = Y(), { now: t } = e, n = t.sheet.value, r = e.layer.value, i = e.weights.value, a = t.view.value, o = V(!1);
	if (n === null || r === null || i === null || a === null) return null;
	let s = e.kind;
	return /* @__PURE__ */ X(A, { children: [
		/* @__PURE__ */ X("div", {
			class: "pane-head",
			children: [/* @__PURE__ */ X(Os, {
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
					/* @__PURE__ */ X(ts, {})
				]
			})]
		}),
		o.value && /* @__PURE__ */ X(ks, { view: a }),
		/* @__PURE__ */ X("p", {
			id: "coarse",
			class: "hint",
			hidden: !n.coarse,
			children: bi(n.coarse ? n.excerpt : null, n.preview || n.tile.pyramidLevel > 0 ? n.tile : null)
		}),
		/* @__PURE__ */ X(As, { label: Ci(i.rows, i.columns, s, n.coarse) }),
		/* @__PURE__ */ X(Ms, {})
	] });
}
function Os({ part: e, editing: t, edit: n }) {
	let r = Y(), { now: i } = r, a = i.answer.value, o = i.sheet.value;
	if (a === null) return null;
	let s = r.layer.value?.heads ?? 0, c = o?.head ?? i.head.value;
	return /* @__PURE__ */ X("nav", {
		class: "crumbs",
		"aria-label": "What is shown",
		children: [/* @__PURE__ */ X("span", {
			id: "choices",
			class: "choices",
			hidden: a.layers.length < 2 && s < 2,
			children: [
				/* @__PURE__ */ X("select", {
					id: "layer",
					"aria-label": "Layer",
					value: String(i.layer.value),
					title: r.layer.value?.name,
					onChange: (e) => r.chooseLayer(Number(e.currentTarget.value)),
					children: hr(a.layers).map(([e, t]) => /* @__PURE__ */ X("optgroup", {
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
						value: c === null ? "" : String(c),
						onChange: (e) => {
							let { value: t } = e.currentTarget;
							r.chooseHead(t === "" ? null : Number(t));
						},
						children: [o?.head === null && /* @__PURE__ */ X("option", {
							value: "",
							children: "mean of all"
						}), Array.from({ length: s }, (e, t) => /* @__PURE__ */ X("option", {
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
			children: fi(e)
		})]
	});
}
function ks({ view: t }) {
	let n = Y(), r = n.layer.value, i = I(null);
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
function As({ label: t }) {
	let n = Y(), r = I(null), i = I(null), a = I(null), o = I(null);
	F(() => {
		if (r.current === null || i.current === null) return;
		let e = ({ row: e, column: t }) => ({
			side: "target",
			index: e,
			partner: t
		});
		return n.map = new ys(n.theme, r.current, i.current, {
			point: (t, r) => {
				n.point(e(t)), r && (n.spoken.value = js(n, e(t)));
			},
			click: (t) => n.pin(e(t)),
			view: (e) => n.view(e),
			here: () => Nr(n.state),
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
				shade: Kt(u, c, s.keys),
				scale: u
			};
			let t = i.head ?? f, n = m === void 0 || t === null && !h ? null : t === null ? Ft(m) : Nt(m, t);
			o.current = n && {
				matrix: n,
				excerpt: e(s),
				shade: Kt(u, n, s.keys),
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
	return H(s), /* @__PURE__ */ X("div", {
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
function js(e, t) {
	let [n, r] = [e.now.sheet.value, e.weights.value];
	if (t === null || n === null || r === null || t.partner === void 0) return "";
	let [i, a] = t.side === "target" ? [n.rows, n.keys] : [n.keys, n.rows], o = Es(r, t), s = i[t.index]?.text ?? "";
	return o === null ? "" : `${J(s)} → ${J(a[t.partner]?.text ?? "")}: ${W(o)}`;
}
function Ms() {
	let e = Y(), { now: t, theme: n } = e, r = I(null), i = e.weights.value, a = t.scale.value;
	return H(() => {
		n.changes.value;
		let e = r.current?.getContext("2d");
		e && Ca(e, n.ramp, [], {
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
						children: Gt.map(([e, t]) => /* @__PURE__ */ X("option", {
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
					children: Jt(a, Vt(i)).map(({ share: e, text: t }) => /* @__PURE__ */ X("span", {
						ref: (t) => t?.style.setProperty("--share", `${(e * 100).toFixed(1)}%`),
						children: t
					}, e))
				})]
			}),
			/* @__PURE__ */ X(Ns, {})
		]
	});
}
function Ns() {
	let e = Y(), { pinned: t, pointed: n } = e.now;
	return /* @__PURE__ */ X("span", {
		id: "readout",
		class: "readout",
		children: js(e, Nr({
			pinned: t.value,
			pointed: n.value
		}))
	});
}
// src/separator.tsx
var Ps = 24;
function Fs({ id: e, label: t, orientation: n, property: r, pane: i, least: a, most: o, sign: s, frame: c }) {
	let l = I(null), u = I(null), d = (e) => n === "vertical" ? e.clientX : e.clientY, f = () => {
		let e = c.current?.querySelector(`.pane.${i}`)?.getBoundingClientRect();
		return Math.round((n === "vertical" ? e?.width : e?.height) ?? a);
	}, p = (e) => {
		let t = Math.round(Math.min(Math.max(e, a), o));
		c.current?.style.setProperty(r, `${t}px`), u.current?.setAttribute("aria-valuenow", String(t));
	};
	return F(() => u.current?.setAttribute("aria-valuenow", String(f())), []), /* @__PURE__ */ X("div", {
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
			if (t >= 0) p(f() + s * (t === 0 ? -24 : Ps));
			else if (e.key === "Home") p(a);
			else if (e.key === "End") p(o);
			else return;
			e.preventDefault();
		}
	});
}
// src/screen.tsx
function Is({ explorer: e }) {
	let t = V(!1), { now: n } = e, r = n.problem.value?.gone === !0, i = (n) => {
		let [r] = n.composedPath(), i = r instanceof HTMLElement && /^(INPUT|TEXTAREA|SELECT)$/.test(r.tagName);
		n.key === "Escape" && !t.value && e.unpin(), n.key === "?" && !i && (n.preventDefault(), t.value = !0);
	};
	return F(() => {
		if (e.address !== null) return document.addEventListener("keydown", i), () => document.removeEventListener("keydown", i);
	}, []), /* @__PURE__ */ X(ni, {
		value: e,
		children: /* @__PURE__ */ X("div", {
			class: r ? "screen gone" : "screen",
			onKeyDown: (t) => {
				e.address === null && i(t);
			},
			children: [
				/* @__PURE__ */ X(Ls, {
					help: t,
					explorer: e
				}),
				/* @__PURE__ */ X(Ai, {}),
				/* @__PURE__ */ X(zs, { explorer: e }),
				/* @__PURE__ */ X(Vs, { explorer: e }),
				/* @__PURE__ */ X("p", {
					class: "unseen",
					id: "spoken",
					role: "status",
					"aria-live": "polite",
					children: e.spoken.value
				}),
				/* @__PURE__ */ X(Xi, { open: t })
			]
		})
	});
}
function Ls({ help: e, explorer: t }) {
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
			/* @__PURE__ */ X(Di, {}),
			/* @__PURE__ */ X("p", {
				id: "facts",
				class: "facts",
				title: [...ri(n), ii(n)].filter((e) => e !== "").join(" · "),
				children: ri(n).map((e) => /* @__PURE__ */ X("span", { children: e }, e))
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
var Rs = [
	["heads", "Heads"],
	["map", "Map"],
	["words", "Words"]
];
function zs({ explorer: e }) {
	let { now: t } = e, n = I(null), r = V("map"), i = (t.answer.value?.layers ?? []).reduce((e, { heads: t }) => e + t, 0) > 1, a = t.sheet.value !== null, o = t.translating.value !== null || t.reading.value && t.sheet.value?.preview !== !0, s = (e) => {
		let t = n.current?.querySelector(`.pane.${e}`);
		n.current?.scrollTo({ left: t instanceof HTMLElement ? t.offsetLeft : 0 });
	};
	return H(() => {
		t.sheet.value !== null && requestAnimationFrame(() => s(r.peek()));
	}), a ? /* @__PURE__ */ X(A, { children: [/* @__PURE__ */ X("nav", {
		class: "pane-tabs",
		"aria-label": "Panes",
		children: Rs.filter(([e]) => e !== "heads" || i).map(([e, t]) => /* @__PURE__ */ X("button", {
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
			let t = Rs.filter(([e]) => e !== "heads" || i);
			r.value = t[Math.round(e.scrollLeft / e.clientWidth)]?.[0] ?? "map";
		},
		children: [
			/* @__PURE__ */ X("section", {
				id: "heads",
				class: "pane heads",
				"aria-labelledby": "heads-title",
				hidden: !i,
				children: /* @__PURE__ */ X(Ji, {})
			}),
			/* @__PURE__ */ X(Fs, {
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
				children: /* @__PURE__ */ X(Ds, {})
			}),
			/* @__PURE__ */ X(Fs, {
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
				children: /* @__PURE__ */ X(Va, {})
			}),
			/* @__PURE__ */ X(Fs, {
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
				children: /* @__PURE__ */ X(zo, {})
			})
		]
	})] }) : /* @__PURE__ */ X("main", {
		id: "looking",
		class: "nothing",
		hidden: t.answer.value !== null && t.answer.value.map === null,
		children: /* @__PURE__ */ X("p", {
			class: "hint",
			children: Bs(e)
		})
	});
}
function Bs({ now: e }) {
	return e.problem.value === null ? e.model.value === null ? "Opening the model…" : e.translating.value !== null || e.reading.value ? "" : e.model.value.texts === null ? "Type a text above. What the model reads and where it looks stands here." : "There is no text here." : "";
}
function Vs({ explorer: e }) {
	let t = e.notice.value;
	return F(() => {
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
var Hs = [
	"#0067a5",
	"#b8480c",
	"#007a55",
	"#8b3a93",
	"#555555",
	"#8a6a00"
], Us = [
	"#6cc0f5",
	"#ff9d5c",
	"#3fd0a3",
	"#e79be0",
	"#d2d2d2",
	"#ecd84a"
], Ws = class {
	frame;
	scheme;
	preference = matchMedia("(prefers-color-scheme: dark)");
	count = B(0);
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
		return this.dark ? Mi : ji;
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
		return this.dark ? Pi : Ni;
	}
	get heads() {
		return this.dark ? Us : Hs;
	}
	dispose() {
		this.preference.removeEventListener("change", this.changed);
	}
	apply() {
		this.frame.classList.toggle("dark", this.dark), this.read.clear(), this.count.value += 1;
	}
};
// src/mount.tsx
function Gs(e) {
	let t = new CSSStyleSheet();
	return t.replaceSync(e), t;
}
function Ks(e, t, n) {
	let r = document.createElement("div");
	r.className = "attlas-explorer";
	let i = r.attachShadow({ mode: "open" });
	i.adoptedStyleSheets = [n.styles];
	let a = document.createElement("div");
	a.className = "explorer", i.append(a), e.append(r);
	let o = new Ws(a, n.scheme ?? "auto"), { address: s } = n, c = new Zr(t, o, s ?? null);
	Ce(/* @__PURE__ */ X(Is, { explorer: c }), a);
	let l = s?.whenChanged(() => void c.follow(s.read()));
	return c.begin(s?.read() ?? n.link ?? ""), { unmount() {
		l?.(), c.stop(), Ce(null, a), o.dispose(), r.remove();
	} };
}
// src/tile.ts
var qs = 1414288449, Js = 2, Ys = 28, Xs = 1;
async function Zs(e) {
	if (e.byteLength < Ys) throw $("its header is cut off");
	let t = new DataView(e);
	if (t.getUint32(0, !0) !== qs) throw $("it does not begin with ATLT");
	if (t.getUint16(4, !0) !== Js) throw $(`its version is ${t.getUint16(4, !0)}, not ${Js}`);
	let n = t.getUint8(6), r = t.getUint8(7), [i, a, o] = [
		8,
		12,
		16
	].map((e) => t.getUint32(e, !0)), s = t.getUint32(24, !0);
	if (n !== 8 && n !== 16 || r !== 1 && r !== 2 || s !== 4 * i + i * a * o * n / 8) throw $("its sizes contradict each other");
	let c = await ec(new Uint8Array(e, Ys), s), l = new DataView(c.buffer, c.byteOffset, c.byteLength), u = Float32Array.from({ length: i }, (e, t) => l.getFloat32(4 * t, !0));
	if (!u.every(Number.isFinite)) throw $("a scale of it is no number");
	let d = c.subarray(4 * i);
	return {
		heads: i,
		rows: a,
		keys: o,
		power: r,
		most: 2 ** n - 2,
		pyramidLevel: t.getUint16(20, !0),
		sampled: (t.getUint16(22, !0) & Xs) !== 0,
		scales: u,
		levels: n === 8 ? d : tc(d)
	};
}
var Qs = 1330402369;
async function $s(e) {
	let t = new DataView(e);
	if (e.byteLength < 8 || t.getUint32(0, !0) !== Qs) throw $("it does not begin with ATLO");
	if (t.getUint16(4, !0) !== 1) throw $("its version is not 1");
	let n = t.getUint16(6, !0), r = 8 + 4 * n;
	if (e.byteLength < r) throw $("its header is cut off");
	let i = Array.from({ length: n }, (n, i) => {
		let a = r;
		return r += t.getUint32(8 + 4 * i, !0), e.slice(a, r);
	});
	if (r !== e.byteLength) throw $("its sizes contradict each other");
	return Promise.all(i.map(Zs));
}
async function ec(e, t) {
	let n = new Uint8Array(t), r = 0, i = new Blob([e]).stream().pipeThrough(new DecompressionStream("deflate")).getReader();
	try {
		for (;;) {
			let { done: e, value: a } = await i.read();
			if (e) break;
			if (r + a.length > t) throw $("it holds more than it says");
			n.set(a, r), r += a.length;
		}
	} catch (e) {
		throw i.cancel().catch(() => void 0), e instanceof U ? e : $("it does not inflate");
	}
	if (r !== t) throw $("it holds less than it says");
	return n;
}
function tc(e) {
	let t = new DataView(e.buffer, e.byteOffset, e.byteLength);
	return Uint16Array.from({ length: e.length / 2 }, (e, n) => t.getUint16(2 * n, !0));
}
function $(e) {
	return new U("a whole tile of weights", `a damaged one (${e})`, "translate again");
}
// src/widget.ts
var nc = class {
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
		return Promise.reject(new U("a text of this trace", "another text", "open the model with attlas look"));
	}
	async text(e, t) {
		return (await this.ask({
			ask: "text",
			row: e
		}, t)).said;
	}
	async overview(e, t) {
		return $s(rc(await this.ask({
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
		let { excerpt: a, head: o } = r, s = `${n(a.rows)},${n(a.keys)}`, c = o === null ? {} : { heads: ic({
			from: o,
			to: o + 1
		}) }, l = {
			...ac(a),
			shape: s,
			...c
		};
		return Zs(rc(await this.ask({
			ask: "tile",
			map: e,
			layer: t,
			query: l
		}, i)));
	}
	async tokens(e, t, n, r) {
		let i = {
			ask: "tokens",
			map: e,
			layer: t,
			query: ac(n)
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
				let n = e.said?.error, o = n === void 0 ? null : U.read(n);
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
function rc({ content: e }) {
	if (e !== null) return e;
	throw new U("an answer in bytes", "one without", "run the cell again");
}
function ic({ from: e, to: t }) {
	return `${e}:${t}`;
}
function ac({ rows: e, keys: t }) {
	return {
		rows: ic(e),
		keys: ic(t)
	};
}
var oc = { render({ model: e, el: t }) {
	let n = new nc(e), r = Ks(t, n, { styles: Gs(":host{height:100%;min-height:36rem;display:block}*,:before,:after{box-sizing:border-box}[hidden]{display:none!important}.explorer{--lightningcss-light:initial;--lightningcss-dark: ;color-scheme:light;--paper:#fbfaf6;--raised:#fff;--line:#dedbd0;--edge:#87836f;--ink:#20242b;--quiet:#5a616d;--accent:#b4471a;--action:#1d5f6e;--on-action:#fff;--wrong:#a3232e;--serif:\"Iowan Old Style\", \"Palatino Linotype\", Palatino, \"Book Antiqua\", Georgia, \"Noto Serif\", serif;--sans:ui-sans-serif, system-ui, -apple-system, \"Segoe UI\", \"Noto Sans\", \"Helvetica Neue\", Arial, sans-serif;background:var(--paper);height:100%;color:var(--ink);font:.875rem / 1.5 var(--sans);text-align:start;container:explorer/inline-size}.explorer.dark{--lightningcss-light: ;--lightningcss-dark:initial;color-scheme:dark;--paper:#14161b;--raised:#1c1f26;--line:#343944;--edge:#7b8291;--ink:#eceae3;--quiet:#a3a9b5;--accent:#ff9d6b;--action:#7fd0dd;--on-action:#0c2025;--wrong:#ff9a9f}p,h1,h2,h3,figure,ol,ul,fieldset{border:0;margin:0;padding:0}fieldset{min-width:0}.unseen{clip-path:inset(50%);white-space:nowrap;width:1px;height:1px;position:absolute;overflow:hidden}:focus-visible{outline:3px solid var(--accent);outline-offset:1px}button,select,input,textarea{font:inherit;color:inherit}button,select,summary,input[type=number]{border:1px solid var(--edge);background:var(--raised);min-height:1.75rem;color:var(--ink);border-radius:.35rem;padding:.125rem .5rem}button,summary{cursor:pointer}button:hover:enabled,summary:hover{border-color:var(--action);color:var(--action)}button:disabled{color:var(--quiet);cursor:default}button.main{border-color:var(--action);background:var(--action);color:var(--on-action);white-space:nowrap;padding:.35rem 1rem;font-weight:600}button.main:hover:enabled{color:var(--on-action);filter:brightness(1.1)}button.quiet,button.link{color:var(--quiet);background:0 0;border-color:#0000}button.quiet:hover:enabled,button.link:hover:enabled{color:var(--action);text-decoration:underline}button.round{border-radius:50%;width:1.75rem;padding:0;font-weight:600}select{text-overflow:ellipsis;max-width:100%}input[type=checkbox],input[type=radio],input[type=range]{accent-color:var(--action);margin:0}.crumbs label,.heads-choices label,.ask label,.scale{min-width:0;color:var(--quiet);align-items:center;gap:.4rem;display:inline-flex}.check{min-height:1.5rem;color:var(--quiet);align-items:center;gap:.4rem;display:inline-flex}kbd{border:1px solid var(--line);background:var(--raised);font:.92em var(--sans);border-radius:.3em;padding:.05em .4em}h2{font:600 1rem / 1.4 var(--serif)}.hint,.note{color:var(--quiet);font-size:.8125rem}.empty{max-width:34rem;padding:1.5rem}.screen{flex-direction:column;height:100%;display:flex;position:relative;overflow:hidden}.head{flex-wrap:wrap;align-items:center;gap:.4rem 1rem;padding:.6rem 1rem;display:flex}.mark{font:600 1.1875rem / 1 var(--serif);letter-spacing:.01em;align-items:center;gap:.5rem;display:flex}.mark svg{width:1rem;height:1rem;fill:var(--action)}.mark .pale{opacity:.25}.ask{flex:100%;order:4;min-width:0}.ask select{max-width:min(40rem,70cqw)}.field{border:1px solid var(--edge);background:var(--raised);border-radius:.6rem;align-items:center;gap:.5rem;padding:.25rem .25rem .25rem .4rem;display:flex}.field:focus-within{border-color:var(--action);outline:2px solid var(--action);outline-offset:-1px}textarea{resize:none;min-width:0;max-height:6rem;font:1.0625rem / 1.45 var(--serif);background:0 0;border:0;outline:0;flex:1;padding:.15rem .3rem}textarea:focus-visible{outline:0}.facts{min-width:0;color:var(--quiet);text-align:end;text-overflow:ellipsis;white-space:nowrap;flex:1 1 0;font-size:.8125rem;overflow:hidden}.facts span:not(:last-child):after{content:\" · \"}.messages{padding:0 1rem}.messages>:last-child{margin-bottom:.4rem}.result{flex-wrap:wrap;align-items:baseline;gap:0 .75rem;max-height:5.4rem;display:flex;overflow:auto}.result h2{color:var(--quiet);font:400 .8125rem / 1.4 var(--sans)}.translation{font:1.25rem / 1.4 var(--serif);text-wrap:pretty;overflow-wrap:anywhere}.remark,.progress{color:var(--quiet)}.problem{border-inline-start:4px solid var(--wrong);background:color-mix(in srgb, var(--wrong) 9%, var(--paper));overflow-wrap:anywhere;border-radius:.3rem;flex-wrap:wrap;justify-content:space-between;align-items:center;gap:.3rem 1rem;margin-bottom:.4rem;padding:.45rem .75rem;display:flex}.pane,.translation{transition:opacity .2s}.stale>.pane,.stale .translation{opacity:.55;transition-delay:.25s}.gone .panes{opacity:.45}.notice{border:1px solid var(--edge);background:var(--raised);overflow-wrap:anywhere;border-radius:.5rem;max-width:min(30rem,90cqw);padding:.5rem .9rem;position:absolute;inset:auto 1rem 1rem auto}.nothing{flex:1;place-content:center;padding:2rem;display:grid}.pane-tabs{border-bottom:1px solid var(--line);gap:.25rem;padding:0 1rem;display:flex}.pane-tabs button,.tabs button{min-height:2.25rem;color:var(--quiet);background:0 0;border:0;border-bottom:3px solid #0000;border-radius:0;padding:0 .75rem}.pane-tabs button{flex:1;min-height:2.75rem}.pane-tabs button[aria-pressed=true],.tabs button[aria-selected=true]{border-bottom-color:var(--action);color:var(--ink);font-weight:600}.panes{scroll-snap-type:x mandatory;scroll-behavior:smooth;scrollbar-width:none;flex:1;grid-template:\"heads map words\"minmax(0,2fr)\"heads map inspector\"minmax(0,3fr)/100% 100% 100%;min-height:0;display:grid;overflow:auto hidden}.panes.single{grid-template:\"map words\"minmax(0,2fr)\"map inspector\"minmax(0,3fr)/100% 100%}.pane{scroll-snap-align:start;flex-direction:column;min-width:0;min-height:0;padding:.5rem 1rem;display:flex;overflow:hidden}.pane.heads{grid-area:heads}.pane.map{grid-area:map}.pane.words{grid-area:words}.pane.inspector{border-top:1px solid var(--line);grid-area:inspector;padding-top:0}.separator{display:none}.pane-head{flex-wrap:wrap;justify-content:space-between;align-items:center;gap:.25rem .75rem;min-height:2.25rem;display:flex}#head{max-width:6rem}#layer{max-width:12rem}.tools{gap:.25rem;margin-inline-start:auto;display:flex}.tools>button{width:1.75rem;padding:0}@container explorer (width>=62.5rem){.head{flex-wrap:nowrap}.ask{flex:30rem;order:0}.ask select{max-width:34rem}.facts{flex:0 auto;max-width:26rem;margin-inline-start:auto}.pane-tabs{display:none}.panes{grid-template:\"heads left map right words\" minmax(0, 1fr) \"below below below below below\" auto \"inspector inspector inspector inspector inspector\" minmax(0, var(--below,252px)) / minmax(0, var(--left,clamp(220px, 23cqw, 380px))) 9px minmax(16rem, 1fr) 9px minmax(0, var(--right,clamp(260px, 27cqw, 440px)));border-top:1px solid var(--line);overflow:hidden}.panes.single{grid-template:\"map right words\" minmax(0, 1fr) \"below below below\" auto \"inspector inspector inspector\" minmax(0, var(--below,252px)) / minmax(16rem, 1fr) 9px minmax(0, var(--right,clamp(260px, 30cqw, 480px)))}.single #left{display:none}#left{grid-area:left}#right{grid-area:right}#below{grid-area:below}.separator{touch-action:none;display:block;position:relative}.separator:before{background:var(--line);content:\"\";position:absolute}.separator.vertical{cursor:col-resize}.separator.vertical:before{inset:0 4px}.separator.horizontal{cursor:row-resize;height:9px}.separator.horizontal:before{inset:4px 0}.separator:hover:before,.separator:focus-visible:before{background:var(--action)}.separator:focus-visible{outline-offset:-3px}.pane.inspector{border-top:0}}.heads-choices{color:var(--quiet);flex-wrap:wrap;align-items:center;gap:.25rem 1rem;padding-bottom:.5rem;font-size:.8125rem;display:flex}.heads-choices select{max-width:10rem}.grid-room{flex:1;min-height:0;overflow:auto}.stack{width:max-content;position:relative}.marks{pointer-events:none;position:absolute;inset:0 auto auto 0}#grid{cursor:pointer;display:block}#grid-readout{min-height:2.5rem;color:var(--ink);font-variant-numeric:tabular-nums;padding-top:.25rem}.crumbs,.choices{font-variant-numeric:tabular-nums;flex-wrap:wrap;align-items:center;gap:.25rem .4rem;min-width:0;display:flex}.between{color:var(--quiet)}.frame{color:var(--quiet);font-variant-numeric:tabular-nums;flex-wrap:wrap;align-items:end;gap:.4rem 1rem;padding:.25rem 0 .5rem;font-size:.8125rem;display:flex}.frame legend{padding:0}.frame input{width:5.5em;margin-inline-end:.25rem}.buttons{flex-wrap:wrap;gap:.25rem;display:flex}.minimap{border:1px solid var(--edge);background:var(--paper);cursor:pointer;touch-action:none;position:absolute;inset:auto 0 0 auto}.map-room{flex:1;place-content:center;min-height:0;display:grid;position:relative;overflow:hidden}#map{cursor:crosshair;display:block}.map-foot{color:var(--quiet);flex-wrap:wrap;align-items:center;gap:.25rem 1.25rem;padding-top:.5rem;font-size:.8125rem;display:flex}.legend{width:15rem;max-width:calc(100% - 2rem);margin:.25rem .75rem 0;position:relative}#legend{border-radius:3px;width:100%;height:10px;display:block}.ticks{font-variant-numeric:tabular-nums;white-space:nowrap;height:1.35em;font-size:.75rem;display:block;position:relative}.ticks span{left:var(--share);position:absolute;transform:translate(-50%)}.ticks span:last-child:nth-child(2){transform:translate(-100%)}.readout{min-height:1.5em;color:var(--ink);text-align:end;font-variant-numeric:tabular-nums;overflow-wrap:anywhere;flex:10rem}.menu{position:relative}summary{align-items:center;list-style:none;display:inline-flex}summary::-webkit-details-marker{display:none}.menu-items{z-index:2;border:1px solid var(--edge);background:var(--raised);border-radius:.5rem;flex-direction:column;min-width:12rem;padding:.25rem;display:flex;position:absolute;inset:calc(100% + .25rem) 0 auto auto}.menu-items button{text-align:start;border-color:#0000}.switches{flex-wrap:wrap;align-items:center;gap:.25rem .75rem;font-size:.8125rem;display:flex}.switch{border:1px solid var(--edge);border-radius:.4rem;display:inline-flex;overflow:hidden}.switch label{display:inline-flex;position:relative}.switch input{opacity:0;cursor:pointer;position:absolute;inset:0}.switch span{background:var(--raised);padding:.15rem .6rem}.switch input:checked+span{background:var(--action);color:var(--on-action)}.switch input:focus-visible+span{outline:3px solid var(--accent);outline-offset:-3px}.texts{flex:1;min-height:0;margin-inline-start:-.3rem;padding:.25rem 0 0 .3rem;overflow-y:auto}.texts h3{color:var(--quiet);font:400 .8125rem / 1.4 var(--sans);padding-top:.5rem}.tokens{contain:content;flex-wrap:wrap;margin-inline-start:-.28rem;display:flex}.token{min-width:1.5rem;max-width:100%;color:inherit;font:1.0625rem / 1.35 var(--serif);overflow-wrap:anywhere;background:0 0;border:0;border-radius:.35rem;flex-direction:column;align-items:center;padding:.15rem .24rem .05rem;display:inline-flex}.token:hover:enabled{color:inherit;box-shadow:inset 0 0 0 1px var(--quiet)}.token.begins{margin-inline-start:.24rem}.token:not(.begins){border-start-start-radius:0;border-end-start-radius:0;min-width:.9rem;padding-inline-start:.05rem}.token.continues{border-start-end-radius:0;border-end-end-radius:0;padding-inline-end:.05rem}.share{min-height:.9rem;font:.6875rem / .9rem var(--sans);font-variant-numeric:tabular-nums}.share:before{content:attr(data-share)}.token.special bdi,.bars .special .word{font-family:var(--sans);font-size:.8125rem}.token.special bdi{line-height:1.43438rem}.token.active,.token.partner,.token.active:hover,.token.partner:hover{box-shadow:inset 0 0 0 2px var(--accent)}.token[aria-pressed=true],.token[aria-pressed=true]:hover:enabled{background:var(--accent)!important;color:var(--paper)!important}.token:focus-visible{z-index:1}.more{color:var(--quiet);align-self:center;padding:0 .6rem;font-size:.8125rem}.caution{border-inline-start:3px solid var(--line);color:var(--quiet);margin-top:.5rem;padding:.1rem 0 .1rem .7rem;font-size:.75rem;line-height:1.4}.tabs{scrollbar-width:none;flex:none;gap:.25rem;margin-inline-start:-.75rem;display:flex;overflow-x:auto}.inspected{flex:1;min-height:0;padding-top:.5rem}.inspected h3{font:600 1rem / 1.35 var(--serif);overflow-wrap:anywhere}.distribution,.lines,.statistics,.compare,.doubt{flex-direction:column;gap:.5rem 2rem;height:100%;min-height:0;display:flex;overflow-y:auto}.aside{flex-direction:column;flex:none;align-items:flex-start;gap:.3rem;font-size:.8125rem;display:flex}.aside>*{flex:none;max-width:100%}.aside p{overflow-wrap:anywhere}.whole{max-height:5rem;overflow:auto}.bars{flex:1 0 9rem;min-height:9rem;list-style:none;overflow:hidden auto}.bars.columns{grid-template-rows:repeat(var(--lines), 26px);grid-auto-columns:236px;grid-auto-flow:column;align-content:start;column-gap:24px;display:grid;overflow:auto hidden}.bars .room{height:var(--room)}.bars.columns .room{width:calc(var(--room) - 24px);grid-row:1/-1;height:auto}.bars .line{border-radius:.25rem;grid-template-columns:minmax(3rem,6.5rem) minmax(2.5rem,1fr) 3.5rem;align-items:center;gap:.5rem;height:26px;padding:0 .2rem;display:grid}.bars .word{text-align:right;text-overflow:ellipsis;white-space:nowrap;overflow:hidden}.track{background:color-mix(in srgb, var(--line) 45%, transparent);border-radius:.2rem;height:.75rem}.bar{border-radius:inherit;height:100%;display:block}.number{color:var(--quiet);font-variant-numeric:tabular-nums;text-align:end;white-space:nowrap;font-size:.8125rem}.bars .top{font-weight:600}.bars .top .number{color:var(--ink)}.bars .partner{box-shadow:inset 0 0 0 2px var(--accent)}.slider{width:100%;max-width:20rem;color:var(--quiet);flex-wrap:wrap;gap:0 .4rem;display:flex}.slider output{color:var(--ink);font-variant-numeric:tabular-nums}.slider input{flex:100%;min-height:1.5rem}.heads-legend{list-style:none}.heads-legend li{align-items:center;gap:.5rem;min-height:1.5rem;display:flex}.heads-legend li button{min-height:1.5rem}.heads-legend .apart{color:var(--quiet)}.swatch{background:var(--paint);border-radius:.2rem;width:1.25rem;height:.35rem}.lines-room{cursor:pointer;flex:1 0 12rem;grid-template:max-content/max-content;min-width:0;min-height:12rem;display:grid;position:relative;overflow:hidden auto}.lines-room.wide{overflow:auto hidden}.spacer,.sticky{grid-area:1/1;place-self:start}.sticky{transition:opacity .12s;display:block;position:sticky;top:0;left:0}.faded{opacity:.35}#interpretation p+p{margin-top:.2rem}.table-room{flex:none;overflow:auto}.statistics table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.8125rem}.statistics th,.statistics td{text-align:end;white-space:nowrap;padding:.05rem .6rem}.statistics thead th{background:var(--paper);color:var(--quiet);font-weight:400;position:sticky;top:0}.statistics tbody th{font-weight:400}.statistics tr.shown :is(td,th){background:color-mix(in srgb, var(--action) 12%, var(--paper));font-weight:600}.statistics .link{min-height:1.5rem;color:var(--ink);padding:0 .4rem;text-decoration:underline}.doubt label{align-items:center;gap:.4rem;width:100%;min-height:1.75rem;display:flex}.doubt :is(select,input){flex:6rem;min-width:0}.notes textarea{border:1px solid var(--edge);background:var(--paper);width:100%;color:inherit;font:inherit;resize:vertical;border-radius:.3rem;padding:.4rem}.notes ul{flex:auto;min-height:0;list-style:none;overflow:hidden auto}.notes li{border-bottom:1px solid var(--line);max-width:40rem;padding-block:.4rem}.notes li p{overflow-wrap:anywhere;white-space:pre-wrap}.notes :is(li button,li a){min-height:1.5rem}.doubt table{border-collapse:collapse;font-variant-numeric:tabular-nums;width:100%;font-size:.8125rem}.doubt caption{text-align:start;color:var(--quiet);padding-bottom:.2rem}.doubt :is(th,td){border-top:1px solid var(--line);text-align:end;vertical-align:baseline;white-space:nowrap;padding:.1rem .5rem}.doubt thead :is(th,td){color:var(--quiet);border-top:0;font-weight:400}.doubt :is(th:first-child,.five,.impossible,thead th:last-child){text-align:start;white-space:normal}.doubt tbody th{overflow-wrap:anywhere;min-width:7rem;font-weight:600}.doubt .table-room .note{padding-top:.5rem}.five{min-width:9rem}.five span{color:var(--quiet);margin-inline-end:.6rem;display:inline-block}.five .own{color:var(--ink);font-weight:600}.seek{padding:.5rem 0}.slopes{flex:none;min-width:0;font-size:.8125rem}.slopes figcaption{color:var(--quiet);padding-bottom:.2rem}.slopes b{color:var(--ink)}.slopes ol{margin:0;padding:2px;list-style:none}.slope{border-radius:.25rem;grid-template-columns:minmax(3rem,6rem) minmax(2rem,1fr) 3.4rem minmax(3rem,1fr) 3.4rem;align-items:center;gap:.4rem;min-height:1.5rem;padding:0 .2rem;display:grid}.slope.partner{box-shadow:inset 0 0 0 2px var(--accent)}.slope .word{text-align:end;text-overflow:ellipsis;white-space:nowrap;overflow:hidden}.slope .track{position:relative;overflow:hidden}.slope .bar{background:var(--action);position:absolute;inset:0 auto 0 0}.slope .bar.other{background:var(--ink);inset-block:60% 0}.slope .middle{background:linear-gradient(var(--edge), var(--edge)) center / 1px 100% no-repeat, color-mix(in srgb, var(--line) 45%, transparent)}.slope .bar.up{inset-inline:50% auto}.slope .bar.down{background:var(--accent);inset-inline:auto 50%}.mechanism .check{width:auto}.mechanism .check input{flex:none}.mechanism .slider{flex-wrap:wrap}.mechanism .slider input{flex:100%}.mechanism .buttons button{min-height:1.5rem}.mechanism .partner :is(th,td){background:color-mix(in srgb, var(--action) 12%, var(--paper))}.mechanism .link{max-width:100%;min-height:1.5rem;color:var(--ink);text-align:start;overflow-wrap:anywhere;padding:0 .2rem;text-decoration:underline}.mechanism .link[aria-pressed=true]{font-weight:600}.mechanism tbody th{min-width:4rem}.mechanism .wide{text-align:start;width:40%;min-width:7rem}.mechanism .wide .track{vertical-align:middle;width:calc(100% - 3.8rem);display:inline-block;overflow:hidden}.mechanism .wide .bar{background:var(--action)}.mechanism .wide .number{width:3.6rem;display:inline-block}.tree{flex:none;min-width:0;font-size:.8125rem;overflow:auto}.tree ul{flex-direction:column;gap:.3rem;margin:0;padding:0;list-style:none;display:flex}.tree li>ul{border-inline-start:2px solid var(--edge);margin-inline-start:.5rem;padding-inline-start:.6rem}.tree .words{overflow-wrap:anywhere;padding:.1rem 0;display:block}.tree bdi{font:1rem / 1.35 var(--serif)}.tree .own bdi{font-weight:600}.tree .number{text-align:start;white-space:normal;display:block}.beams .five .link{min-height:1.5rem;margin-inline-end:.3rem;padding:0 .3rem;text-decoration:underline}.beams .partner :is(th,td){background:color-mix(in srgb, var(--action) 12%, var(--paper))}.formula .number{color:var(--ink)}.formula{font-variant-numeric:tabular-nums;flex-direction:column;gap:.2rem;display:flex}.strip{margin-bottom:.45rem}.strip span{overflow-wrap:anywhere;display:block}.strip small{color:var(--quiet);font-variant-numeric:tabular-nums}.strip canvas{display:block}.places{min-width:0;color:var(--quiet);flex-direction:column;flex:1 0 8rem;font-size:.8125rem;display:flex}.places b{color:var(--ink);font-weight:600}.places canvas{flex:1;width:100%;min-height:6rem}.small-map{flex-direction:column;flex:1 0 12rem;min-width:0;font-size:.8125rem;display:flex}.small-map figcaption{text-overflow:ellipsis;white-space:nowrap;overflow:hidden}.small-room{flex:1;min-height:8rem;margin-bottom:.4rem;overflow:hidden}.small-map canvas{display:block}@container explorer (width>=62.5rem){.distribution,.lines,.statistics,.compare,.doubt{flex-direction:row;overflow:hidden}.aside{width:19rem;max-height:100%;overflow-y:auto}.statistics .aside{width:22rem}.doubt .table-room{flex:32rem}.beams .tree{flex:24rem}.doubt .slopes{flex:0 21rem;overflow:hidden auto}.bars,.lines-room{min-height:0}.statistics .table-room{max-width:50%}.small-map{flex:1 1 0}.small-room,.places canvas{min-height:0}}dialog{border:1px solid var(--edge);background:var(--paper);max-width:min(44rem,94vw);max-height:90vh;color:var(--ink);border-radius:.75rem;padding:0}dialog::backdrop{background:#00000073}.help{flex-direction:column;gap:.75rem;padding:1.5rem;display:flex}.help h2{font-size:1.25rem}.help table{border-collapse:collapse}.help :is(th,td){text-align:start;vertical-align:top;padding:.15rem .75rem .15rem 0}.help .main{align-self:end}@media (prefers-reduced-motion:reduce){*{scroll-behavior:auto!important;transition:none!important}}@media (forced-colors:active){.token.active,.token.partner{outline:2px solid highlight}.token[aria-pressed=true]{outline:3px solid highlight}.separator:before{background:canvastext}.tabs button[aria-selected=true],.pane-tabs button[aria-pressed=true]{border-bottom-color:highlight}.switch input:checked+span{color:highlighttext;forced-color-adjust:none;background:highlight}.bar,.swatch,.token,canvas{forced-color-adjust:none}}") });
	return () => {
		r.unmount(), n.close();
	};
} };
export { nc as Messages, oc as default };
