import type { Door, Layer, Tokens } from "./door.ts";
import { type Excerpt, type Span, cells, coarse, group, whole } from "./excerpt.ts";
import { type Label, labels, numbered } from "./label.ts";
import { type Tile, only } from "./tile.ts";

/** A part of one layer's map, as it came: its weights, and what its rows and columns are. */
export interface Sheet {
  readonly layer: number;
  readonly excerpt: Excerpt;
  readonly tile: Tile;
  /** The head that the tile holds alone; null where it holds all of them. */
  readonly head: number | null;
  /** Whether a cell is the largest of several weights. */
  readonly coarse: boolean;
  /** Whether something less exact is shown while the weights are read, such as the small picture. */
  readonly preview: boolean;
  readonly rows: readonly Label[];
  readonly keys: readonly Label[];
}

const LONG = 1 << 26; // weights of a map, from which reading them all takes a reader's patience

/** Whether a part of such a map is first shown as its overview has it. */
export function takesLong(layer: Layer, excerpt: Excerpt): boolean {
  return coarse(excerpt) && layer.queries * layer.keys > LONG;
}

/** The whole map of a head as the overview has it. */
export function preview(overview: Tile, layer: Layer, index: number, head: number): Sheet {
  return glanced(only(overview, head), whole(layer), index, head);
}

/** A part of a map, until it has come as exactly as it can be. */
export function glanced(tile: Tile, excerpt: Excerpt, index: number, head: number | null): Sheet {
  const rows = groups(excerpt.rows, tile.rows);
  const keys = groups(excerpt.keys, tile.keys);
  return { layer: index, excerpt, tile, head, coarse: true, preview: true, rows, keys };
}

const MOST_WEIGHTS = 1 << 22; // of a tile that holds all heads
const FEW_WEIGHTS = 1 << 18; // of one that comes as fast as one head alone

/** How many weights all heads have in a part of a map; Infinity where they are pooled. */
function weights(layer: Layer, excerpt: Excerpt): number {
  return coarse(excerpt) ? Infinity : layer.heads * cells(excerpt.rows) * cells(excerpt.keys);
}

/** Whether all heads of a layer can come at once. */
export function holdsAll(layer: Layer, excerpt: Excerpt): boolean {
  return weights(layer, excerpt) <= MOST_WEIGHTS;
}

/** Whether a reader notices the time until a part is there, so that the overview is shown first. */
export function takesAMoment(layer: Layer, excerpt: Excerpt): boolean {
  return weights(layer, excerpt) > FEW_WEIGHTS;
}

/** The head that is asked for alone; null where all of them are. */
export function headAlone(layer: Layer, head: number | null, excerpt: Excerpt): number | null {
  const alone = head === null ? !holdsAll(layer, excerpt) : takesAMoment(layer, excerpt);
  return alone ? Math.min(head ?? 0, layer.heads - 1) : null;
}

/**
 * Ask for a part of a map: for the head alone where there are many weights or they are pooled, else
 * for all heads. The mean of all needs all.
 */
export async function sheet(
  door: Door,
  map: string,
  { layer, index, head }: { layer: Layer; index: number; head: number | null },
  excerpt: Excerpt,
  signal: AbortSignal,
  tokensOf: () => Promise<Tokens> = () => door.tokens(map, index, excerpt, signal),
): Promise<Sheet> {
  const pooled = coarse(excerpt);
  const only = headAlone(layer, head, excerpt);
  const part = { excerpt, head: only };
  const [tile, tokens] = await Promise.all([
    door.tile(map, index, part, signal),
    pooled ? { rows: [], keys: [] } : tokensOf(),
  ]);
  const axis = (span: Span, named: readonly string[], count: number): readonly Label[] =>
    pooled || tile.pyramidLevel > 0
      ? groups(span, count)
      : labelled(named, span);
  return {
    layer: index,
    excerpt,
    tile,
    head: only,
    coarse: pooled || tile.pyramidLevel > 0, // a file may hold no more than pictures of a map
    preview: false,
    rows: axis(excerpt.rows, tokens.rows, tile.rows),
    keys: axis(excerpt.keys, tokens.keys, tile.keys),
  };
}

const known = new WeakMap<readonly string[], readonly Label[]>();

/** The tokens of an axis as labels: the same ones each time, by which drawings know that nothing changed. */
function labelled(tokens: readonly string[], { from, to }: Span): readonly Label[] {
  const found = known.get(tokens) ?? labels(tokens, to - from, from);
  known.set(tokens, found);
  return found;
}

/** The cells of an axis by the places that they stand for, counted from 0. */
function groups(span: Span, count = cells(span)): Label[] {
  return Array.from({ length: count }, (_, index) => {
    const { from, to } = group(span, index, count);
    return numbered(to - from === 1 ? `${from}` : `${from}–${to - 1}`);
  });
}
