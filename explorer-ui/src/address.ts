import type { Excerpt, Span } from "./excerpt.ts";
import { Problem } from "./problem.ts";
import { SCALES, type Scale } from "./scale.ts";
import type { Head } from "./grid-layout.ts";
import { MODEL, PLACES } from "./mechanism.ts";
import type { Order, Place, Side } from "./state.ts";

/** How what is open is looked at: the part of a link that is a part of the state too. */
export interface Look {
  readonly order: Order;
  readonly scale: Scale;
  /** By which statistic the grid of heads is marked, null = none, and whether it is sorted by it. */
  readonly statistic: string | null;
  readonly sorted: boolean;
  /** Only heads are shown whose number is at least so many hundredths of the largest. */
  readonly least: number;
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
  /** What is doubted: an output, the weight in hundredths that a key gets (null = the model's), a token
   * that is erased. */
  readonly output: number | null;
  readonly weight: number | null;
  readonly erased: number | null;
  /** What the scores of a row are multiplied by, see `factorAt`, and whether nothing hides keys. */
  readonly factor: number;
  readonly unmasked: boolean;
  /** Whether queries and keys are those without positions. */
  readonly unplaced: boolean;
  /** How many words of the translation the map shows, beside the tab that asks for it; null = all. */
  readonly grown: number | null;
  /** The ids of the tokens with which the translation begins. */
  readonly forced: readonly number[];
  /** The source whose head is compared with the one in view, from 0. */
  readonly beside: number | null;
}

/**
 * All that a link to the page says: what is open, and how it is looked at. null = left to the page.
 * Places of `pinned` are counted from the beginning of the text.
 */
export interface Link extends Look {
  readonly text: string | null;
  /** The text of a trace, from 0. */
  readonly row: number | null;
  readonly layer: number | null;
  /** A head, from 0, or the mean of all. */
  readonly head: number | "mean" | null;
  readonly view: Excerpt | null;
  readonly pinned: Place | null;
}

export const MOST_HEADS = 6; // that can be selected, the one that is shown among them

export const MOST_WORDS = 12; // that can be kept together

export const VERSION = 1;

/** How all is looked at where a link says nothing of it. */
export const usual: Look = {
  order: "sentence",
  scale: "root",
  statistic: null,
  sorted: false,
  least: 0,
  selected: [],
  tab: null,
  side: "target",
  joined: false,
  threshold: 5,
  apart: false,
  output: null,
  weight: null,
  erased: null,
  factor: MODEL,
  unmasked: false,
  unplaced: false,
  grown: null,
  forced: [],
  beside: null,
};

export const nowhere: Link = { text: null, row: null, layer: null, head: null, view: null, pinned: null, ...usual };

/** How something is looked at, of all that is said of it. */
export function look(whole: Look): Look {
  const names = Object.keys(usual) as (keyof Look)[];
  return Object.fromEntries(names.map((name) => [name, whole[name]])) as unknown as Look;
}

/**
 * The part of an address after "#". The sentence stands first and in full, after it
 * fp, the ids with which its translation begins, to base 36; the rest is
 *
 *     v version   row text of a trace   l layer   h head or mean   q queries   k keys, first–last
 *     p what is kept: t or s for its side, its place, and after "." that of its partner, or after each
 *       "_" that of a word beside it
 *     o=weight the order of the list   s scale   m statistic   sort=1
 *     mf least number of a head that is shown, in hundredths of the largest
 *     sel other heads, layer.head   tab of the inspector   d=s words are what is looked at
 *     w=1 pieces joined to words   t least weight of a line in hundredths   x=1 sinks left out
 *     out an output that is doubted   wt a weight set by hand, in hundredths   er a token erased
 *     f what scores are multiplied by, a place of its slider   u=1 nothing hides keys
 *     np=1 queries and keys without positions   n words of the translation that are there, from 1
 *     b the source whose head is compared with the one in view
 */
export function written(link: Link): string {
  const parts: string[] = [];
  let beside = 0; // how many parts come before the version
  const [given, normal] = [flat(link), flat(nowhere)];
  for (const [name, field] of ENTRIES) {
    const [letter, , write = String] = field;
    const said = (one: Flat) => {
      const value = one[name];
      return value === null ? null : String(write(value));
    };
    const value = said(given);
    if (value !== null && value !== said(normal)) parts.push(`${letter}=${encodeURIComponent(value)}`);
    if (letter === "fp") beside = parts.length;
  }
  if (parts.length > beside) parts.splice(beside, 0, `v=${VERSION}`);
  return parts.length > 0 ? `#${parts.join("&")}` : "";
}

/** What `written` wrote. A `Problem` where the link is damaged; "#text=…" alone is a whole one. */
export function read(hash: string): Link {
  const given = new Map<string, string>();
  for (const part of hash.replace(/^#/, "").split("&").filter((part) => part !== "")) {
    const [name = "", ...rest] = part.split("=");
    const known = name === "v" || ENTRIES.some(([, [letter]]) => letter === name);
    if (!known || given.has(name)) throw damaged(part);
    given.set(name, decoded(rest.join("="), part));
  }
  if (given.has("v") && given.get("v") !== String(VERSION)) throw damaged(`v=${given.get("v")}`);
  const found: Record<string, unknown> = { ...flat(nowhere) };
  for (const [name, [letter, parse]] of ENTRIES) {
    const value = given.get(letter);
    if (value === undefined) continue;
    const parsed = parse(value);
    if (parsed === null) throw damaged(`${letter}=${value}`);
    found[name] = parsed;
  }
  const { rows, keys, text, ...link } = found as unknown as Flat;
  if ((!rows) !== (!keys)) throw damaged("one of q and k alone");
  return { ...link, text: text || null, view: rows && keys ? { rows, keys } : null };
}

/** A link whose part in view is two parts, as it is written. */
interface Flat extends Omit<Link, "view"> {
  readonly rows: Span | null;
  readonly keys: Span | null;
}

function flat({ view, ...link }: Link): Flat {
  return { ...link, rows: view && view.rows, keys: view && view.keys };
}

type Read<Value> = (text: string) => Value | null;
type Field<Value> = readonly [string, Read<Value>, ((value: NonNullable<Value>) => string | number)?];

/** What is said of each part of a link: its letters, how it is read (null: damaged), how written. */
const FIELDS: { readonly [Name in keyof Flat]: Field<Flat[Name]> } = {
  text: ["text", String],
  forced: ["fp", ids, (forced) => forced.map((id) => id.toString(36)).join(".")],
  row: ["row", number],
  layer: ["l", number],
  head: ["h", (value) => (value === "mean" ? value : number(value))],
  rows: ["q", span, range],
  keys: ["k", span, range],
  pinned: ["p", placeOf, place],
  order: ["o", (value) => (value === "weight" ? value : null)],
  scale: ["s", (value) => SCALES.find(([scale]) => scale === value)?.[0] ?? null],
  statistic: ["m", (value) => (/^[a-z_]{1,40}$/.test(value) ? value : null)],
  sorted: ["sort", yes, Number],
  least: ["mf", share],
  selected: ["sel", headsOf, (heads) => heads.map(({ layer, head }) => `${layer}.${head}`).join("_")],
  tab: ["tab", (value) => (/^[a-z]{1,20}$/.test(value) ? value : null)],
  side: ["d", (value) => (value === "s" ? "source" : null), (side) => side.slice(0, 1)],
  joined: ["w", yes, Number],
  threshold: ["t", share],
  apart: ["x", yes, Number],
  output: ["out", number],
  weight: ["wt", share],
  erased: ["er", number],
  factor: ["f", (value) => upTo(PLACES, value)],
  unmasked: ["u", yes, Number],
  unplaced: ["np", yes, Number],
  grown: ["n", (value) => number(value) || null],
  beside: ["b", number],
};
const ENTRIES = Object.entries(FIELDS) as [keyof Flat, Field<unknown>][];

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
    return !match ? null : { layer: Number(match[1]), head: Number(match[2]) };
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
  if (!match) return null;
  const [from, last] = [Number(match[1]), Number(match[2])];
  return from <= last ? { from, to: last + 1 } : null;
}

function number(text: string): number | null {
  return /^\d{1,9}$/.test(text) ? Number(text) : null;
}

function place({ side, index, partner, also = [] }: Place): string {
  return `${side === "target" ? "t" : "s"}${[index, ...also].join("_")}${partner === undefined ? "" : `.${partner}`}`;
}

function placeOf(text: string): Place | null {
  const match = /^([ts])(\d{1,9}(?:_\d{1,9}){0,11})(?:\.(\d{1,9}))?$/.exec(text);
  if (!match) return null;
  const side = match[1] === "t" ? "target" : "source";
  const [index = 0, ...also] = (match[2] ?? "").split("_").map(Number);
  const own = { side, index, ...(also.length > 0 && { also }) } as const;
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
