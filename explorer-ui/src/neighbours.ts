import { signal } from "@preact/signals";
import type { Answer, Door } from "./door.ts";
import type { Excerpt } from "./excerpt.ts";
import { same } from "./excerpt.ts";
import { type Sheet, holdsAll } from "./sheet.ts";
import { type Tile, only } from "./tile.ts";

interface Asked {
  readonly map: string;
  readonly layer: number;
  readonly excerpt: Excerpt;
}

/**
 * The other heads of the layer in view, where it came with one head alone: with a byte a weight, so
 * that another head is there at once, until its own weights have come.
 */
export class Neighbours {
  private readonly came = signal<{ readonly asked: Asked; readonly tiles: readonly Tile[] } | null>(null);
  private asked: Asked | null = null;
  private request = new AbortController();

  constructor(private readonly door: Door) {}

  /** Ask for those of a sheet, unless they are here or on their way. */
  follow(answer: Answer | null, sheet: Sheet | null): void {
    const layer = sheet === null ? undefined : answer?.layers[sheet.layer];
    const map = answer?.map ?? null;
    if (sheet === null || layer === undefined || map === null) return this.stop();
    const asked = { map, layer: sheet.layer, excerpt: sheet.excerpt };
    if (this.asked !== null && alike(this.asked, asked)) return;
    this.stop();
    const alone = sheet.head !== null && !sheet.preview && layer.heads > 1;
    if (!alone || !holdsAll(layer, sheet.excerpt)) return;
    this.asked = asked;
    const { signal: stop } = (this.request = new AbortController());
    this.door.tile(map, sheet.layer, { excerpt: sheet.excerpt, head: null, rough: true }, stop).then(
      (tile) => {
        if (!stop.aborted) this.came.value = { asked, tiles: Array.from({ length: tile.heads }, (_, head) => only(tile, head)) };
      },
      // Nobody asked for them: a head is asked for itself when it is chosen, and says what is wrong.
      () => undefined,
    );
  }

  /** Another head of the layer that a sheet shows, in the same part; null while it is not here. */
  sheet(now: Sheet | null, answer: Answer | null, head: number): Sheet | null {
    const tile = this.tilesOf(now, answer)?.[head];
    return now === null || tile === undefined ? null : { ...now, tile, head, preview: true };
  }

  /** Let go of what is here and on its way. */
  stop(): void {
    this.request.abort();
    [this.asked, this.came.value] = [null, null];
  }

  private tilesOf(now: Sheet | null, answer: Answer | null): readonly Tile[] | null {
    const came = this.came.value;
    if (came === null || now === null || now.coarse || answer === null || answer.map === null) return null;
    return alike(came.asked, { map: answer.map, layer: now.layer, excerpt: now.excerpt }) ? came.tiles : null;
  }
}

function alike(one: Asked, other: Asked): boolean {
  return one.map === other.map && one.layer === other.layer && same(one.excerpt, other.excerpt);
}
