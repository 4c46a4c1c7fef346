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
const LEAST = 32; // places that a step closer leaves in view
const STEP = 8; // how much closer that is

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
export function group(span: Span, index: number): Span {
  const edge = (i: number) => span.from + Math.floor((i * length(span)) / cells(span));
  return { from: edge(index), to: edge(index + 1) };
}

/** The part that two cells and all between them show. */
export function between(excerpt: Excerpt, rows: [number, number], keys: [number, number]): Excerpt {
  const over = (span: Span, [one, other]: [number, number]): Span => ({
    from: group(span, Math.min(one, other)).from,
    to: group(span, Math.max(one, other)).to,
  });
  return { rows: over(excerpt.rows, rows), keys: over(excerpt.keys, keys) };
}

/** An eighth of each axis around a cell. */
export function closer(excerpt: Excerpt, row: number, key: number): Excerpt {
  const around = (span: Span, index: number): Span => {
    const { from, to } = group(span, index);
    const size = Math.max(LEAST, Math.ceil(length(span) / STEP));
    return within(Math.round((from + to) / 2), size, span);
  };
  return { rows: around(excerpt.rows, row), keys: around(excerpt.keys, key) };
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
  return excerpt !== null && alike ? excerpt : whole(to);
}

/** What a link says of the part in view, where this layer has it; else all of it. */
export function fitted(excerpt: Excerpt | null, layer: Layer): Excerpt {
  const inside = ({ from, to }: Span, most: number) => 0 <= from && from < to && to <= most;
  return excerpt !== null && inside(excerpt.rows, layer.queries) && inside(excerpt.keys, layer.keys)
    ? excerpt
    : whole(layer);
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
