import type { Layer } from "./door.ts";
import type { Excerpt, Span } from "./excerpt.ts";

/** How large the whole map is drawn, in CSS pixels. */
export interface Size {
  readonly width: number;
  readonly height: number;
}

const LARGEST = 38; // px of a cell of a map that fits
export const CLOSEST = 72; // px of a cell, nearer than which nobody comes
const ALIKE = 4; // axes whose lengths differ by more have cells that are not square

/** The whole map in a room; cells are square where that leaves both axes readable. */
export function fit({ queries, keys }: Layer, room: Size): Size {
  const across = Math.min(room.width / Math.max(keys, 1), LARGEST);
  const down = Math.min(room.height / Math.max(queries, 1), LARGEST);
  const square = Math.max(across, down) / Math.min(across, down) <= ALIKE;
  const [width, height] = square ? [Math.min(across, down), Math.min(across, down)] : [across, down];
  return { width: width * keys, height: height * queries };
}

/** A part of an axis of `most` places, `factor` times as near, around the point at this share of it. */
export function zoomed(span: Span, share: number, factor: number, most: number, size: number): Span {
  const least = Math.min(most, size / CLOSEST);
  const length = Math.min(Math.max((span.to - span.from) / factor, least), most);
  const point = span.from + share * (span.to - span.from);
  return within(point - share * length, length, most);
}

/** The part that lies so many pixels farther. */
export function panned(span: Span, pixels: number, most: number, size: number): Span {
  const length = span.to - span.from;
  return within(span.from + (pixels / size) * length, length, most);
}

function within(from: number, length: number, most: number): Span {
  const start = Math.min(Math.max(from, 0), most - length);
  return { from: start, to: start + length };
}

/** The whole places that a part touches. */
export function touched({ rows, keys }: Excerpt): Excerpt {
  const whole = ({ from, to }: Span): Span => {
    const first = Math.floor(from + 1e-6);
    return { from: first, to: Math.max(Math.ceil(to - 1e-6), first + 1) };
  };
  return { rows: whole(rows), keys: whole(keys) };
}

/** The place at a point, counted from the beginning of the text. */
export function placeAt(span: Span, pixels: number, size: number): number {
  const place = Math.floor(span.from + (pixels / size) * (span.to - span.from));
  return Math.min(Math.max(place, Math.floor(span.from)), Math.ceil(span.to) - 1);
}

/** Where a place begins, in pixels from the beginning of what is in view. */
export function pixelOf(span: Span, place: number, size: number): number {
  return ((place - span.from) / (span.to - span.from)) * size;
}

/** Round places in a part: every 1, 2, 5, 10, … of them, at least `gap` pixels apart. */
export function roundPlaces(span: Span, size: number, gap: number): number[] {
  const each = size / (span.to - span.from);
  let step = 1;
  for (let power = 1; step * each < gap; power *= 10) {
    step = [1, 2, 5, 10].map((one) => one * power).find((one) => one * each >= gap) ?? 10 * power;
  }
  const first = Math.ceil(span.from / step) * step;
  const found: number[] = [];
  for (let place = first; place < span.to; place += step) found.push(place);
  return found;
}

/** The places of a part that are in view. */
export function inView(span: Span, shown: Span): Span {
  return {
    from: Math.max(span.from, Math.floor(shown.from)),
    to: Math.min(span.to, Math.ceil(shown.to)),
  };
}

/** Its places, one by one. */
export function each({ from, to }: Span): number[] {
  return Array.from({ length: Math.max(to - from, 0) }, (_, index) => from + index);
}
