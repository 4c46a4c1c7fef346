import type { Answer, Door, Layer, Model, Note, Part, Statistics, Tokens } from "./door.ts";
import { type Excerpt, type Span, cells, group } from "./excerpt.ts";
import { Problem } from "./problem.ts";
import { type Tile, unpack, unpackOverview } from "./tile.ts";

/** One text of a file: its answer, and all that a server would be asked for. */
interface Held extends Omit<Answer, "map"> {
  readonly statistics: Statistics;
  /** Pictures of all heads, in base64, as they travel; null where the tiles hold all weights. */
  readonly overview: string | null;
  /** By layer, in base64; null where the single weights were left out. */
  readonly tiles: readonly (string | null)[];
  /** By layer, the places in `names` of its rows and of its keys. */
  readonly tokens: readonly (readonly [number, number])[];
  /** In base64, by the layers that ask for them. */
  readonly images?: Readonly<Record<number, string>>;
}

/** What a file holds; see `attlas.explorer.one_file.Content`. */
export interface Content {
  readonly version: number;
  readonly model: Model;
  readonly answers: readonly Held[];
  readonly names: readonly (readonly string[])[];
  readonly notes?: readonly Note[];
  /** How the page was when the file was written. */
  readonly link?: string;
}

const VERSION = 1;

/** The door to what this document holds. */
export function embedded(within: Document): Embedded {
  return new Embedded(JSON.parse(within.getElementById("attlas-data")?.textContent ?? "{}") as Content);
}

/** A door to a file: every view that needs no model. */
export class Embedded implements Door {
  get link(): string {
    return this.content.link ?? "";
  }

  private readonly overviews = new Map<number, Promise<readonly Tile[]>>();
  private readonly tiles = new Map<string, Promise<Tile>>();

  constructor(private readonly content: Content) {
    if (content.version !== VERSION) {
      throw new Problem(`a file of version ${VERSION}`, `version ${content.version}`, "export it again");
    }
  }

  model(): Promise<Model> {
    return Promise.resolve({ ...this.content.model, notes: (this.content.notes ?? []).length > 0 });
  }

  notes(): Promise<readonly Note[]> {
    return Promise.resolve(this.content.notes ?? []);
  }

  translate(): Promise<Answer> {
    return Promise.reject(
      new Problem("a text that this file holds", "another text", "open the model with attlas look"),
    );
  }

  text(row: number): Promise<Answer> {
    const held = this.content.answers[row];
    if (!held) return Promise.reject(missing("text", row));
    const { text, score, blank, layers, remarks, prompt } = held;
    return Promise.resolve({ text, score, blank, layers, remarks, prompt: prompt ?? 0, map: String(row) });
  }

  overview(map: string): Promise<readonly Tile[]> {
    const { overview, layers } = this.held(map);
    return kept(this.overviews, Number(map), async () => {
      if (overview !== null) return unpackOverview(bytes(overview));
      const tiles = await Promise.all(layers.map((_, layer) => this.whole(map, layer)));
      return tiles.map(picture);
    });
  }

  async statistics(map: string): Promise<Statistics> {
    return this.held(map).statistics;
  }

  async tile(map: string, layer: number, { excerpt, head }: Part): Promise<Tile> {
    const described = this.held(map).layers[layer];
    if (!described) throw missing("layer", layer);
    return cut(await this.whole(map, layer), described, excerpt, head);
  }

  async tokens(map: string, layer: number, { rows, keys }: Excerpt): Promise<Tokens> {
    const [queries = [], looked = []] = (this.held(map).tokens[layer] ?? []).map(
      (place) => this.content.names[place] ?? [],
    );
    return { rows: queries.slice(rows.from, rows.to), keys: looked.slice(keys.from, keys.to) };
  }

  async image(map: string, layer: number): Promise<ArrayBuffer> {
    const image = this.held(map).images?.[layer];
    if (image === undefined) throw missing("image", layer);
    return bytes(image);
  }

  /** All of a layer: its weights, or the picture of them where they were left out. */
  private async whole(map: string, layer: number): Promise<Tile> {
    const packed = this.held(map).tiles[layer];
    if (packed) return kept(this.tiles, `${map} ${layer}`, () => unpack(bytes(packed)));
    const tile = (await this.overview(map))[layer];
    if (!tile) throw missing("layer", layer);
    return tile;
  }

  private held(map: string): Held {
    const held = this.content.answers[Number(map)];
    if (!held) throw missing("map", map);
    return held;
  }
}

/**
 * A part of a tile that holds a whole layer. Where a cell stands for several, it is the largest of
 * them, and it is hidden only where all are.
 */
export function cut(tile: Tile, layer: Layer, excerpt: Excerpt, head: number | null): Tile {
  const rows = groups(excerpt.rows, layer.queries, tile.rows);
  const keys = groups(excerpt.keys, layer.keys, tile.keys);
  const heads = head === null ? Array.from({ length: tile.heads }, (_, index) => index) : [head];
  return pooled(tile, heads, rows, keys);
}

const SIDE = 64; // cells of a picture

/** A small picture of every head of a tile. */
export function picture(tile: Tile): Tile {
  const parts = (size: number): Span[] => {
    const count = Math.min(size, SIDE);
    return Array.from({ length: count }, (_, index) => group({ from: 0, to: size }, index, count));
  };
  const heads = Array.from({ length: tile.heads }, (_, index) => index);
  return pooled(tile, heads, parts(tile.rows), parts(tile.keys));
}

/** Each cell is the largest of a group of cells. */
function pooled(
  tile: Tile,
  heads: readonly number[],
  rows: readonly Span[],
  keys: readonly Span[],
): Tile {
  const levels = new (tile.levels.constructor as Uint8ArrayConstructor)(
    heads.length * rows.length * keys.length,
  );
  const hidden = tile.most + 1;
  let place = 0;
  for (const index of heads) {
    for (const row of rows) {
      for (const key of keys) {
        let most = -1;
        for (let i = row.from; i < row.to; i++) {
          const from = (index * tile.rows + i) * tile.keys;
          for (let j = from + key.from; j < from + key.to; j++) {
            const level = tile.levels[j] ?? hidden;
            if (level !== hidden && level > most) most = level;
          }
        }
        levels[place++] = most < 0 ? hidden : most;
      }
    }
  }
  const largest = [...rows, ...keys].reduce((most, { from, to }) => Math.max(most, to - from), 1);
  return {
    ...tile,
    heads: heads.length,
    rows: rows.length,
    keys: keys.length,
    pyramidLevel: tile.pyramidLevel + Math.ceil(Math.log2(largest)),
    scales: Float32Array.from(heads, (index) => tile.scales[index] ?? 0),
    levels,
  };
}

/** Of each cell in view the cells of the tile; `count` of them divide `size` places. */
function groups(span: Span, size: number, count: number): Span[] {
  const cell = (place: number) => Math.floor(((place + 1) * count - 1) / size);
  return Array.from({ length: cells(span) }, (_, index) => {
    const { from, to } = group(span, index);
    return { from: cell(from), to: cell(to - 1) + 1 };
  });
}

function kept<Key, Value>(
  held: Map<Key, Promise<Value>>,
  key: Key,
  make: () => Promise<Value>,
): Promise<Value> {
  const there = held.get(key) ?? make();
  held.set(key, there);
  return there;
}

function bytes(base64: string): ArrayBuffer {
  const letters = atob(base64);
  const found = new Uint8Array(letters.length);
  for (let index = 0; index < letters.length; index++) found[index] = letters.charCodeAt(index);
  return found.buffer;
}

function missing(what: string, which: number | string): Problem {
  return new Problem(`a ${what} that this file holds`, `${what} ${which}`, "choose another one");
}
