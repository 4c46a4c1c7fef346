import type { Answer, Model } from "./door.ts";
import { type Matrix, head, mean } from "./matrix.ts";
import type { Problem } from "./problem.ts";
import type { Tile } from "./tile.ts";

export type Side = "source" | "target";
export type Order = "sentence" | "weight";

/** A token on one of the two axes; `partner` is the one across, where a cell is pointed at. */
export interface Place {
  readonly side: Side;
  readonly index: number;
  readonly partner?: number;
}

/** Everything the page shows. A change is a new state. */
export interface State {
  readonly model: Model | null;
  /** The text that is being translated, and whether that is taking long. */
  readonly asking: string | null;
  readonly slow: boolean;
  /** The latest translation, the text it is of, and the weights of the chosen layer. */
  readonly asked: string | null;
  readonly answer: Answer | null;
  readonly tile: Tile | null;
  readonly problem: Problem | null;
  readonly layer: number;
  /** A head, counted from 0, or null for the mean of all. */
  readonly head: number | null;
  /** What the reader points at, and what is kept by a click or Enter. */
  readonly pointed: Place | null;
  readonly pinned: Place | null;
  readonly order: Order;
}

export const empty: State = {
  model: null,
  asking: null,
  slow: false,
  asked: null,
  answer: null,
  tile: null,
  problem: null,
  layer: 0,
  head: null,
  pointed: null,
  pinned: null,
  order: "sentence",
};

/** A translation was asked for; the one before stays in view until this one comes. */
export function asking(state: State, text: string): State {
  return { ...state, asking: text, slow: false, problem: null };
}

/** It came. The first word is pointed at, so that the page shows what pointing does. */
export function answered(state: State, text: string, answer: Answer, tile: Tile | null): State {
  const layer = Math.min(state.layer, Math.max(answer.layers.length - 1, 0));
  return {
    ...state,
    asking: null,
    slow: false,
    problem: null,
    asked: text,
    answer,
    tile,
    layer,
    head: headWithin(state.head, tile),
    pointed: tile !== null && tile.rows > 0 ? { side: "target", index: 0 } : null,
    pinned: null,
  };
}

/** It did not come. What was there before stays. */
export function failed(state: State, problem: Problem): State {
  return { ...state, asking: null, slow: false, problem };
}

/** Another layer of the same translation. */
export function relayered(state: State, layer: number, tile: Tile): State {
  return { ...state, layer, tile, head: headWithin(state.head, tile), problem: null };
}

export function pointedAt(state: State, place: Place): State {
  return same(state.pointed, place) ? state : { ...state, pointed: place };
}

/** Keep this place in view; once more lets it go. */
export function pinnedAt(state: State, place: Place): State {
  return { ...state, pinned: same(state.pinned, place) ? null : place, pointed: place };
}

export function unpinned(state: State): State {
  return state.pinned === null ? state : { ...state, pinned: null };
}

/** What is in view: what is kept, otherwise what was pointed at last. */
export function active(state: State): Place | null {
  return state.pinned ?? state.pointed;
}

/** The weights in view. */
export function matrix(state: State): Matrix | null {
  if (state.tile === null) return null;
  return state.head === null ? mean(state.tile) : head(state.tile, state.head);
}

function headWithin(head: number | null, tile: Tile | null): number | null {
  return head === null || tile === null || head >= tile.heads ? null : head;
}

function same(a: Place | null, b: Place): boolean {
  return a !== null && a.side === b.side && a.index === b.index && a.partner === b.partner;
}
