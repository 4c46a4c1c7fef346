import type { Layer } from "./door.ts";
import type { Excerpt } from "./excerpt.ts";
import type { Label } from "./label.ts";
import type { Piece } from "./painting.ts";
import type { Pen } from "./pen.ts";
import { type Size, fit } from "./viewport.ts";

export const FONT = 13;
export const LONGEST_LABEL = 112; // px; a longer one ends in "…" and is read in full in its row
export const NAMED = 11; // px of a place, from which each has its name
export const EDGE = 16; // px after the map, into which its last number reaches

/** What of a picture decides where its map lies. */
interface Named {
  readonly layer: Layer;
  readonly near: Piece;
  readonly rows: readonly Label[];
  readonly columns: readonly Label[];
}

/** Where a map lies in its room, in CSS pixels. */
export interface Plan extends Size {
  readonly left: number;
  readonly top: number;
  /** Whether the places of each axis have their names beside them. */
  readonly named: { readonly rows: boolean; readonly keys: boolean };
}

const widths = new WeakMap<readonly Label[], number>(); // px of the widest, as names are written

/** What is needed on the left of a map and above it, with or without names. */
function margins(pen: Pen, picture: Named, rows: boolean, keys: boolean): { left: number; top: number } {
  const widest = (labels: readonly Label[]) => {
    const known = widths.get(labels);
    if (known !== undefined) return known;
    const found = labels.reduce((most, { text }) => Math.max(most, Math.min(pen.measureText(text).width, LONGEST_LABEL)), 0);
    widths.set(labels, found);
    return found;
  };
  const numbers = pen.measureText(picture.layer.queries.toLocaleString("en")).width;
  return {
    left: Math.ceil(Math.max(rows ? widest(picture.rows) : 0, numbers) + 12),
    top: Math.ceil((keys ? widest(picture.columns) : FONT) + 14),
  };
}

/** The same map with names where cells are single tokens, as many as fit. */
export function withNames(pen: Pen, picture: Named, plan: Plan): Plan {
  const single = exact(picture.near);
  return { ...plan, ...margins(pen, picture, single, single), named: { rows: single, keys: single } };
}

/** Names stand beside the map where each has room; elsewhere round numbers need less of it. */
export function planned(pen: Pen, picture: Named, room: Size, shown: Excerpt): Plan {
  const single = exact(picture.near);
  const around = (rows: boolean, keys: boolean) => {
    const { left, top } = margins(pen, picture, rows, keys);
    const width = Math.max(room.width - left - EDGE, 40);
    const size = fit(picture.layer, { width, height: Math.max(room.height - top - 4, 40) });
    return { left, top, ...size };
  };
  const most = around(single, single);
  const named = {
    rows: single && most.height / (shown.rows.to - shown.rows.from) >= NAMED,
    keys: single && most.width / (shown.keys.to - shown.keys.from) >= NAMED,
  };
  return { ...around(named.rows, named.keys), named };
}

/** Whether every cell is one weight. */
export function exact({ matrix, excerpt }: Pick<Piece, "matrix" | "excerpt">): boolean {
  const { rows, keys } = excerpt;
  return rows.to - rows.from === matrix.rows && keys.to - keys.from === matrix.columns;
}
