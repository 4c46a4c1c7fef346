import type { Layer } from "./door.ts";

/** Places of one axis, counted from 0: the first, and the one after the last. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** The part of a map that is in view. */
export interface Excerpt {
  readonly rows: Span;
  readonly keys: Span;
}

export const MOST = 512; // cells of each axis; a larger part is shown by the largest weight of each
const STEP = 8; // how much farther one goes at a time

export function whole(layer: Layer): Excerpt {
  return { rows: { from: 0, to: layer.queries }, keys: { from: 0, to: layer.keys } };
}

export function length(span: Span): number {
  return span.to - span.from;
}

/** How many cells an axis has in view. */
export function cells(span: Span): number {
  return Math.min(length(span), MOST);
}

/** Whether a cell stands for more than one weight. */
export function coarse(excerpt: Excerpt): boolean {
  return length(excerpt.rows) > MOST || length(excerpt.keys) > MOST;
}

/** The places of cell `index`: it begins at ⌊index · length / cells⌋, as the server has it. */
export function group(span: Span, index: number, count = cells(span)): Span {
  const edge = (i: number) => span.from + Math.floor((i * length(span)) / count);
  return { from: edge(index), to: edge(index + 1) };
}

/** Eight times as much of each axis, around the same middle. */
export function farther(excerpt: Excerpt, layer: Layer): Excerpt {
  const all = whole(layer);
  const around = (span: Span, most: Span): Span =>
    within(Math.round((span.from + span.to) / 2), length(span) * STEP, most);
  return { rows: around(excerpt.rows, all.rows), keys: around(excerpt.keys, all.keys) };
}

/** Of another layer the same places, where it has them; else all of it. */
export function carried(excerpt: Excerpt | null, from: Layer | null, to: Layer): Excerpt {
  const alike = from?.queries === to.queries && from.keys === to.keys;
  return excerpt && alike ? excerpt : whole(to);
}

/** What a link says of the part in view, where this layer has it; else all of it. */
export function fitted(excerpt: Excerpt | null, layer: Layer): Excerpt {
  const inside = ({ from, to }: Span, most: number) => 0 <= from && from < to && to <= most;
  return excerpt && inside(excerpt.rows, layer.queries) && inside(excerpt.keys, layer.keys)
    ? excerpt
    : whole(layer);
}

/**
 * What is asked for to show a part: twice as much of it where that comes exactly, so that the reader
 * can move a little; the whole map where it is small.
 */
export function around(view: Excerpt, layer: Layer): Excerpt {
  if (Math.max(layer.queries, layer.keys) <= MOST) return whole(layer);
  const wider = (span: Span, most: number): Span => {
    if (length(span) > MOST) return span;
    const size = Math.min(Math.max(2 * length(span), 64), MOST);
    return within(Math.round((span.from + span.to) / 2), size, { from: 0, to: most });
  };
  return { rows: wider(view.rows, layer.queries), keys: wider(view.keys, layer.keys) };
}

export function contains(part: Excerpt, view: Excerpt): boolean {
  const inside = (a: Span, b: Span) => a.from <= b.from && b.to <= a.to;
  return inside(part.rows, view.rows) && inside(part.keys, view.keys);
}

export function same(one: Excerpt, other: Excerpt): boolean {
  const alike = (a: Span, b: Span) => a.from === b.from && a.to === b.to;
  return alike(one.rows, other.rows) && alike(one.keys, other.keys);
}

/** So many places around one, moved and cut so that they lie in a span. */
function within(middle: number, size: number, span: Span): Span {
  const fitting = Math.min(size, length(span));
  const from = Math.min(
    Math.max(middle - Math.floor(fitting / 2), span.from),
    span.to - fitting,
  );
  return { from, to: from + fitting };
}
