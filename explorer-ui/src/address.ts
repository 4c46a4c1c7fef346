import type { Excerpt, Span } from "./excerpt.ts";
import { Problem } from "./problem.ts";
import { SCALES, type Scale } from "./scale.ts";
import type { Head } from "./grid-layout.ts";
import { MODEL, PLACES } from "./mechanism.ts";
import type { Order, Place, Side } from "./state.ts";

/**
 * All that a link to the page says: what is open, and how it is looked at. null = left to the page.
 * Places of `pinned` are counted from the beginning of the text.
 */
export interface Link {
  readonly text: string | null;
  /** The text of a trace, from 0. */
  readonly row: number | null;
  readonly layer: number | null;
  /** A head, from 0, or the mean of all. */
  readonly head: number | "mean" | null;
  readonly view: Excerpt | null;
  readonly pinned: Place | null;
  readonly order: Order;
  readonly scale: Scale;
  /** By which statistic the grid of heads is marked, and whether it is sorted by it. */
  readonly statistic: string | null;
  readonly sorted: boolean;
  /** The heads beside the one that is shown, and the tab of the inspector. */
  readonly selected: readonly Head[];
  readonly tab: string | null;
  /** Of a text that looks at itself: whether words are pointed at as what looks, or is looked at. */
  readonly side: Side;
  /** Whether pieces are joined to words. */
  readonly joined: boolean;
  /** The least weight that has a line, in hundredths. */
  readonly threshold: number;
  /** Whether statistics leave out sinks and special tokens. */
  readonly apart: boolean;
  /** What is doubted: an output, the weight in hundredths that a key gets, a token that is erased. */
  readonly output: number | null;
  readonly weight: number;
  readonly erased: number | null;
  /** What the scores of a row are multiplied by, see `factorAt`, and whether nothing hides keys. */
  readonly factor: number;
  readonly unmasked: boolean;
  /** The ids of the tokens with which the translation begins. */
  readonly forced: readonly number[];
}

export const MOST_HEADS = 6; // that can be selected, the one that is shown among them

export const VERSION = 1;

export const nowhere: Link = {
  text: null,
  row: null,
  layer: null,
  head: null,
  view: null,
  pinned: null,
  order: "sentence",
  scale: "root",
  statistic: null,
  sorted: false,
  selected: [],
  tab: null,
  side: "target",
  joined: false,
  threshold: 5,
  apart: false,
  output: null,
  weight: 0,
  erased: null,
  factor: MODEL,
  unmasked: false,
  forced: [],
};

/**
 * The part of an address after "#". The sentence stands first and in full, after it
 * fp, the ids with which its translation begins, to base 36; the rest is
 *
 *     v version   row text of a trace   l layer   h head or mean   q queries   k keys, first–last
 *     p what is kept: t or s for its side, its place, and that of its partner
 *     o=weight the order of the list   s scale   m statistic   sort=1
 *     sel other heads, layer.head   tab of the inspector   d=s words are what is looked at
 *     w=1 pieces joined to words   t least weight of a line in hundredths   x=1 sinks left out
 *     out an output that is doubted   wt a weight set by hand, in hundredths   er a token erased
 *     f what scores are multiplied by, a place of its slider   u=1 nothing hides keys
 */
export function written(link: Link): string {
  const parts: string[] = [];
  const say = (name: string, value: string | number | null) => {
    if (value !== null) parts.push(`${name}=${encodeURIComponent(value)}`);
  };
  say("text", link.text);
  say("fp", link.forced.length > 0 ? link.forced.map((id) => id.toString(36)).join(".") : null);
  const beside = parts.length;
  say("row", link.row);
  say("l", link.layer);
  say("h", link.head);
  say("q", link.view && range(link.view.rows));
  say("k", link.view && range(link.view.keys));
  say("p", link.pinned && place(link.pinned));
  say("o", link.order === nowhere.order ? null : link.order);
  say("s", link.scale === nowhere.scale ? null : link.scale);
  say("m", link.statistic);
  say("sort", link.sorted ? 1 : null);
  const heads = link.selected.map(({ layer, head }) => `${layer}.${head}`);
  say("sel", heads.length > 0 ? heads.join("_") : null);
  say("tab", link.tab === nowhere.tab ? null : link.tab);
  say("d", link.side === "source" ? "s" : null);
  say("w", link.joined ? 1 : null);
  say("t", link.threshold === nowhere.threshold ? null : link.threshold);
  say("x", link.apart ? 1 : null);
  say("out", link.output);
  say("wt", link.weight === nowhere.weight ? null : link.weight);
  say("er", link.erased);
  say("f", link.factor === nowhere.factor ? null : link.factor);
  say("u", link.unmasked ? 1 : null);
  if (parts.length > beside) parts.splice(beside, 0, `v=${VERSION}`);
  return parts.length > 0 ? `#${parts.join("&")}` : "";
}

/** What `written` wrote. A `Problem` where the link is damaged; "#text=…" alone is a whole one. */
export function read(hash: string): Link {
  const given = new Map<string, string>();
  for (const part of hash.replace(/^#/, "").split("&").filter((part) => part !== "")) {
    const [name = "", ...rest] = part.split("=");
    if (!NAMES.has(name) || given.has(name)) throw damaged(part);
    given.set(name, decoded(rest.join("="), part));
  }
  if (given.has("v") && given.get("v") !== String(VERSION)) throw damaged(`v=${given.get("v")}`);
  const part = <T>(name: string, parse: (value: string) => T | null): T | null => {
    const value = given.get(name);
    if (value === undefined) return null;
    const parsed = parse(value);
    if (parsed === null) throw damaged(`${name}=${value}`);
    return parsed;
  };
  const [rows, keys] = [part("q", span), part("k", span)];
  if ((rows === null) !== (keys === null)) throw damaged("one of q and k alone");
  return {
    text: given.get("text") || null,
    row: part("row", number),
    layer: part("l", number),
    head: part("h", (value) => (value === "mean" ? value : number(value))),
    view: rows !== null && keys !== null ? { rows, keys } : null,
    pinned: part("p", placeOf),
    order: part("o", (value) => (value === "weight" ? value : null)) ?? nowhere.order,
    scale: part("s", (value) => SCALES.find(([scale]) => scale === value)?.[0] ?? null) ?? nowhere.scale,
    statistic: part("m", (value) => (/^[a-z_]{1,40}$/.test(value) ? value : null)),
    sorted: part("sort", yes) ?? false,
    selected: part("sel", headsOf) ?? [],
    tab: part("tab", (value) => (/^[a-z]{1,20}$/.test(value) ? value : null)),
    side: part("d", (value) => (value === "s" ? "source" : null)) ?? "target",
    joined: part("w", yes) ?? false,
    threshold: part("t", share) ?? nowhere.threshold,
    apart: part("x", yes) ?? false,
    output: part("out", number),
    weight: part("wt", share) ?? nowhere.weight,
    erased: part("er", number),
    factor: part("f", (value) => upTo(PLACES, value)) ?? nowhere.factor,
    unmasked: part("u", yes) ?? false,
    forced: part("fp", ids) ?? nowhere.forced,
  };
}

const NAMES = new Set(["text", "v", "row", "l", "h", "q", "k", "p", "o", "s", "m", "sort", "sel", "tab", "d", "w", "t", "x", "out", "wt", "er", "f", "u", "fp"]);

function yes(value: string): true | null {
  return value === "1" ? true : null;
}

function share(text: string): number | null {
  return upTo(100, text);
}

function upTo(most: number, text: string): number | null {
  const value = number(text);
  return value !== null && value <= most ? value : null;
}

function headsOf(text: string): Head[] | null {
  const heads = text.split("_").map((part) => {
    const match = /^(\d{1,9})\.(\d{1,9})$/.exec(part);
    return match === null ? null : { layer: Number(match[1]), head: Number(match[2]) };
  });
  return heads.length < MOST_HEADS && heads.every((head) => head !== null) ? heads : null;
}

function ids(text: string): number[] | null {
  return /^[0-9a-z]{1,6}(\.[0-9a-z]{1,6})*$/.test(text) ? text.split(".").map((id) => parseInt(id, 36)) : null;
}

function range({ from, to }: Span): string {
  return `${from}-${to - 1}`;
}

function span(text: string): Span | null {
  const match = /^(\d{1,9})-(\d{1,9})$/.exec(text);
  if (match === null) return null;
  const [from, last] = [Number(match[1]), Number(match[2])];
  return from <= last ? { from, to: last + 1 } : null;
}

function number(text: string): number | null {
  return /^\d{1,9}$/.test(text) ? Number(text) : null;
}

function place({ side, index, partner }: Place): string {
  return `${side === "target" ? "t" : "s"}${index}${partner === undefined ? "" : `.${partner}`}`;
}

function placeOf(text: string): Place | null {
  const match = /^([ts])(\d{1,9})(?:\.(\d{1,9}))?$/.exec(text);
  if (match === null) return null;
  const side = match[1] === "t" ? "target" : "source";
  const own = { side, index: Number(match[2]) } as const;
  return match[3] === undefined ? own : { ...own, partner: Number(match[3]) };
}

function decoded(text: string, part: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw damaged(part);
  }
}

function damaged(part: string): Problem {
  const shown = part.length > 60 ? `${part.slice(0, 59)}…` : part;
  return new Problem("a whole link to this page", `a damaged one (${shown})`, "ask for the link again");
}
