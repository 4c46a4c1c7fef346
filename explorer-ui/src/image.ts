import type { Layer } from "./door.ts";
import type { Excerpt } from "./excerpt.ts";
import type { Matrix } from "./matrix.ts";
import type { Place } from "./state.ts";

/** What a place of the weights in view says of the patches of an image. */
export interface Patched {
  /** Of each patch; NaN where no query may look there, undefined where it is out of view. */
  readonly weights: readonly (number | undefined)[];
  /** The place across of the first patch, counted as in the weights. */
  readonly first: number;
  /** Whether patches look as well as being looked at. */
  readonly both: boolean;
  /** The patches of the place itself and of the one across; others where these are no patches. */
  readonly own: number;
  readonly across: number;
}

export function patched({ image, within, queries, keys }: Layer, excerpt: Excerpt, matrix: Matrix, place: Place): Patched | null {
  if (!image) return null;
  const target = place.side === "target";
  const both = within && queries === keys;
  const [rows, columns] = [image.first - excerpt.rows.from, image.first - excerpt.keys.from];
  const [first, count] = target ? [columns, matrix.columns] : [rows, both ? matrix.rows : 0];
  const weights = Array.from({ length: image.grid[0] * image.grid[1] }, (_, patch) => {
    const index = first + patch;
    const [row, column] = target ? [place.index, index] : [index, place.index];
    return index < 0 || index >= count ? undefined : matrix.values[row * matrix.columns + column];
  });
  const own = target ? (both ? place.index - rows : NaN) : place.index - columns;
  return { weights, first, both, own, across: (place.partner ?? NaN) - first };
}
