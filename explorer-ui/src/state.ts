import { type Link, type Look, MOST_HEADS, MOST_WORDS, look, usual } from "./address.ts";
import type { Answer, Layer, Model, Statistics } from "./door.ts";
import { type Excerpt, same as sameExcerpt, whole } from "./excerpt.ts";
import { type Head, sameHead } from "./grid-layout.ts";
import { type Matrix, head, mean } from "./matrix.ts";
import type { Problem } from "./problem.ts";
import type { Sheet } from "./sheet.ts";
import type { Tile } from "./tile.ts";

export type Side = "source" | "target";
export type Order = "sentence" | "weight";

/**
 * A token on one of the two axes: the target's are the rows, which look, the source's the columns,
 * which are looked at. `partner` is the one across, where a cell is pointed at. `also` are other
 * tokens of the same side that are looked at together with it.
 */
export interface Place {
  readonly side: Side;
  readonly index: number;
  readonly partner?: number;
  readonly also?: readonly number[];
}

/** Everything the page shows. A change is a new state. */
export interface State extends Look {
  readonly model: Model | null;
  /** The text that is being translated. */
  readonly translating: string | null;
  /** Whether weights are being read, and whether either is taking long. */
  readonly reading: boolean;
  readonly slow: boolean;
  /** Which share of them is read; null where that is not known. */
  readonly share: number | null;
  /** The latest answer, the text it is of (null: a trace's), and the weights in view. */
  readonly sentence: string | null;
  readonly answer: Answer | null;
  readonly sheet: Sheet | null;
  /** The part of the map in view; the sheet has it, and maybe more. */
  readonly view: Excerpt | null;
  /** Of all heads of the answer. */
  readonly overview: Overview | null;
  /** The text of a trace that is open, from 0. */
  readonly row: number | null;
  readonly problem: Problem | null;
  readonly layer: number;
  /** A head, counted from 0, or null for the mean of all. */
  readonly head: number | null;
  /** What the reader points at, and what is kept by a click or Enter. */
  readonly pointed: Place | null;
  readonly pinned: Place | null;
  /** Whether the reader chose the head, so that the next text shows it too. */
  readonly chosen: boolean;
}

/** A picture of every head, by layer, and numbers of each. */
export interface Overview {
  readonly tiles: readonly Tile[];
  readonly statistics: Statistics;
  /** The layers whose keys run to the left. */
  readonly rightToLeft: ReadonlySet<number>;
}

export const empty: State = {
  model: null,
  translating: null,
  reading: false,
  slow: false,
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
  ...usual,
  chosen: false,
};

const idle = { translating: null, reading: false, slow: false, share: null, problem: null } as const;

/** A translation was asked for; the one before stays in view until this one comes. */
export function translating(state: State, text: string): State {
  return { ...state, ...idle, translating: text };
}

/** Weights were asked for; those before stay in view until these come. */
export function reading(state: State): State {
  return { ...state, reading: true, share: null, problem: null };
}

/** What is shown of an answer at first. */
export interface First {
  readonly sheet: Sheet | null;
  readonly view: Excerpt | null;
  readonly overview: Overview | null;
  readonly row?: number | null;
}

/** An answer came. The first word is pointed at, so that the page shows what pointing does. */
export function answered(
  state: State,
  text: string | null,
  answer: Answer,
  { sheet, view, overview, row = null }: First,
): State {
  const layer = sheet?.layer ?? 0;
  const head = sheet?.head ?? headWithin(state.head, answer.layers[layer]);
  const selected = present(state.selected, answer);
  const doubted = { output: null, weight: null, erased: null, forced: usual.forced, grown: null };
  const now = { sentence: text, row, answer, sheet, view, overview, layer, head, selected, ...doubted };
  return { ...state, ...idle, ...now, pointed: first(sheet, view, overview, head), pinned: null };
}

/** It did not come. What was there before stays. */
export function failed(state: State, problem: Problem): State {
  return { ...state, ...idle, problem };
}

/** Other weights of the same answer. What was kept stays kept where the places are the same. */
export function withSheet(state: State, head: number | null, sheet: Sheet, view: Excerpt): State {
  const own = sheet.head ?? headWithin(head, state.answer?.layers[sheet.layer]);
  const now = { layer: sheet.layer, head: own };
  const before = layer(state);
  const after = state.answer?.layers[sheet.layer];
  const alike = before?.queries === after?.queries && before?.keys === after?.keys;
  const from = alike ? state.sheet : null;
  const places = {
    pointed: carriedPlace(state.pointed, from, sheet) ?? first(sheet, view, state.overview, own),
    pinned: carriedPlace(state.pinned, from, sheet),
  };
  const calm = { reading: false, slow: state.slow && state.translating !== null, problem: null };
  return { ...state, ...calm, ...now, ...places, sheet, view };
}

/** Another part of the weights that are there. What is pointed at stays in view. */
export function viewed(state: State, head: number | null, view: Excerpt): State {
  const { sheet, pointed } = state;
  const now = { ...state, head, view, reading: false };
  if (!sheet || sheet.coarse) return now;
  if (pointed) {
    const { side, index } = shifted(pointed, sheet.excerpt, 1);
    const span = side === "target" ? view.rows : view.keys;
    if (index >= span.from && index < span.to) return now;
  }
  return { ...now, pointed: first(sheet, view, state.overview, head) };
}

export function pointedAt(state: State, place: Place): State {
  return samePlace(state.pointed, place) ? state : { ...state, pointed: place };
}

/** Keep this place in view; once more lets it go. A weight that was set was that of another place. */
export function pinnedAt(state: State, place: Place): State {
  return { ...state, pinned: samePlace(state.pinned, place) ? null : place, pointed: place, weight: null };
}

/** Keep this word beside those of its side that are kept, or let it go. */
export function pinnedBeside(state: State, { side, index }: Place): State {
  const { pinned } = state;
  const kept = pinned?.side === side ? placesOf(pinned) : [];
  const others = kept.filter((one) => one !== index);
  const [first, ...also] = others.length < kept.length ? others : [index, ...kept].slice(0, MOST_WORDS);
  return first === undefined ? unpinned(state) : pinnedAt({ ...state, pinned: null }, { side, index: first, also });
}

/** All places of one side that are looked at together. */
export function placesOf({ index, also = [] }: Place): number[] {
  return [index, ...also];
}

export function unpinned(state: State): State {
  return !state.pinned ? state : { ...state, pinned: null, weight: null };
}

/** What is in view: what is kept, otherwise what was pointed at last. */
export function active(state: Pick<State, "pinned" | "pointed">): Place | null {
  return state.pinned ?? state.pointed;
}

/** The weights in view. */
export function matrix(state: State): Matrix | null {
  return weightsOf(state.sheet, state.head);
}

const unpacked = new WeakMap<Tile, Map<number | null, Matrix>>();

/** The weights of a head of a sheet, or (null) of the mean of all; the same object each time. */
export function weightsOf(sheet: Sheet | null, index: number | null): Matrix | null {
  if (!sheet) return null;
  const { tile } = sheet;
  const own = sheet.head === null ? index : 0;
  const kept = unpacked.get(tile) ?? new Map<number | null, Matrix>();
  unpacked.set(tile, kept);
  const found = kept.get(own) ?? (own === null ? mean(tile) : head(tile, own));
  kept.set(own, found);
  return found;
}

/** The layer in view. */
export function layer(state: State): Layer | null {
  return state.answer?.layers[state.layer] ?? null;
}

/** Whether this head can be shown of the weights that are there. */
export function holds(state: State, head: number | null): boolean {
  if (!state.sheet) return false;
  return state.sheet.head === null || state.sheet.head === head;
}

/** The heads that are looked at together: the one that is shown, then those selected beside it. */
export function heads({
  layer,
  head,
  selected,
  sheet,
}: Pick<State, "layer" | "head" | "selected" | "sheet">): Head[] {
  const shown = head === null || !sheet ? [] : [{ layer, head }];
  return [...shown, ...selected.filter((one) => !shown.some((other) => sameHead(one, other)))];
}

/** Select a head beside the one that is shown, or let it go. */
export function toggled(state: State, head: Head): State {
  const { selected, layer, head: shown } = state;
  if (shown !== null && sameHead(head, { layer, head: shown })) return state;
  const without = selected.filter((one) => !sameHead(one, head));
  if (without.length < selected.length) return { ...state, selected: without };
  return { ...state, selected: [...selected, head].slice(1 - MOST_HEADS) };
}

function present(heads: readonly Head[], answer: Answer | null): readonly Head[] {
  return !answer
    ? heads
    : heads.filter(({ layer, head }) => head < (answer.layers[layer]?.heads ?? 0));
}

function headWithin(head: number | null, layer: Layer | undefined): number | null {
  return head === null || !layer || head >= layer.heads ? null : head;
}

/** The row of a head that is most worth seeing, where it is in view; else the first one. */
function first(sheet: Sheet | null, view: Excerpt | null, overview: Overview | null, head: number | null): Place | null {
  if (!sheet || sheet.coarse || sheet.tile.rows === 0) return null;
  const start = sheet.excerpt.rows.from;
  const { from, to } = (view ?? sheet.excerpt).rows;
  const row = overview?.statistics.layers[sheet.layer]?.["row"]?.[head ?? -1] ?? from;
  return { side: "target", index: (row < from || row >= to ? from : row) - start };
}

export function samePlace(a: Place | null, b: Place | null): boolean {
  return a?.side === b?.side && a?.partner === b?.partner && String(a && placesOf(a)) === String(b && placesOf(b));
}

/** All of this state that a link keeps. What is kept by a click is counted from the text's beginning. */
export function link(state: State): Link {
  const { sheet, pinned, answer, view } = state;
  const excerpt = sheet?.excerpt;
  const own = layer(state);
  const all = !own || !view || sameExcerpt(view, whole(own));
  return {
    text: state.sentence,
    row: state.row,
    layer: !answer || !sheet ? null : state.layer,
    head: !answer || !sheet ? null : (state.head ?? "mean"),
    view: all ? null : view,
    pinned: !pinned || !excerpt ? null : shifted(pinned, excerpt, 1),
    ...look(state),
  };
}

/** The state in which what a link says of the view is so; its text, head and part come from the door. */
export function restored(state: State, link: Link): State {
  const chosen = state.chosen || link.head !== null;
  return { ...state, ...look(link), selected: present(link.selected, state.answer), chosen };
}

/** What a link keeps is kept again, where it is in view. */
export function repinned(state: State, pinned: Place | null): State {
  const { sheet } = state;
  if (!sheet || sheet.coarse) return state;
  if (!pinned) return { ...state, pinned: null };
  const place = shifted(pinned, sheet.excerpt, -1);
  return inside(place, sheet) ? { ...state, pinned: place, pointed: place } : { ...state, pinned: null };
}

function inside(place: Place, { tile }: Sheet): boolean {
  const { side, partner = 0 } = place;
  const [most, others] = side === "target" ? [tile.rows, tile.keys] : [tile.keys, tile.rows];
  return placesOf(place).every((index) => index >= 0 && index < most) && partner >= 0 && partner < others;
}

/** The same place of the text in other weights of it; null where they do not have it, one by one. */
function carriedPlace(place: Place | null, from: Sheet | null, to: Sheet): Place | null {
  if (!place || !from || from.coarse || to.coarse) return null;
  const carried = shifted(shifted(place, from.excerpt, 1), to.excerpt, -1);
  return inside(carried, to) ? carried : null;
}

/** A place counted from the beginning of the text (sign 1), or of what is in view (−1). */
function shifted(place: Place, { rows, keys }: Excerpt, sign: 1 | -1): Place {
  const target = place.side === "target";
  const [own, across] = target ? [rows.from, keys.from] : [keys.from, rows.from];
  const [index = 0, ...also] = placesOf(place).map((one) => one + sign * own);
  const moved = { ...place, index, ...(also.length > 0 && { also }) };
  return place.partner === undefined ? moved : { ...moved, partner: place.partner + sign * across };
}
