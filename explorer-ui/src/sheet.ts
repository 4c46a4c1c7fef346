import type { Door, Layer } from "./door.ts";
import { type Excerpt, type Span, cells, coarse, group } from "./excerpt.ts";
import { type Label, labels, numbered } from "./label.ts";
import type { Tile } from "./tile.ts";

/** A part of one layer's map, as it came: its weights, and what its rows and columns are. */
export interface Sheet {
  readonly layer: number;
  readonly excerpt: Excerpt;
  readonly tile: Tile;
  /** The head that the tile holds alone; null where it holds all of them. */
  readonly head: number | null;
  /** Whether a cell is the largest of several weights. */
  readonly coarse: boolean;
  readonly rows: readonly Label[];
  readonly keys: readonly Label[];
}

const MOST_WEIGHTS = 1 << 22; // of a tile that holds all heads

/** Ask for a part of a map; of many weights, and where they are pooled, for one head alone. */
export async function sheet(
  door: Door,
  map: string,
  { layer, index, head }: { layer: Layer; index: number; head: number | null },
  excerpt: Excerpt,
  signal: AbortSignal,
): Promise<Sheet> {
  const pooled = coarse(excerpt);
  const size = layer.heads * cells(excerpt.rows) * cells(excerpt.keys);
  const alone = pooled || size > MOST_WEIGHTS;
  const only = alone ? Math.min(head ?? 0, layer.heads - 1) : null;
  const asked = { excerpt, head: only };
  const [tile, tokens] = await Promise.all([
    door.tile(map, index, asked, signal),
    pooled ? { rows: [], keys: [] } : door.tokens(map, index, excerpt, signal),
  ]);
  const axis = (span: Span, named: readonly string[]): Label[] =>
    pooled ? groups(span) : labels(named, span.to - span.from, span.from);
  return {
    layer: index,
    excerpt,
    tile,
    head: only,
    coarse: pooled,
    rows: axis(excerpt.rows, tokens.rows),
    keys: axis(excerpt.keys, tokens.keys),
  };
}

/** The cells of an axis by the places that they stand for, counted from 0. */
function groups(span: Span): Label[] {
  return Array.from({ length: cells(span) }, (_, index) => {
    const { from, to } = group(span, index);
    return numbered(to - from === 1 ? `${from}` : `${from}–${to - 1}`);
  });
}
