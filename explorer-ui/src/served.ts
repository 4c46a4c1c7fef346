import type { Adversary, Alignment, Answer, Beams, Door, DoubtQuestion, Effects, Explained, MechanismQuestion, Model, Note, Part, Statistics, Tokens } from "./door.ts";
import { type Excerpt, type Span, cells } from "./excerpt.ts";
import { Problem } from "./problem.ts";
import { type Tile, unpack, unpackOverview } from "./tile.ts";

/** The door to `attlas look`: the server that this page came from, and no other. */
export class Served implements Door {
  /** source: which of several is shown, from 0. */
  constructor(readonly source = 0) {}

  other(source: number): Door {
    return new Served(source);
  }

  choose(source: number): void {
    location.search = source === 0 ? "" : `s=${source}`; // a page of its own, with the same view
  }

  model(): Promise<Model> {
    return this.json("model", {});
  }

  translate(text: string, forced: readonly number[], signal: AbortSignal): Promise<Answer> {
    return this.json("translate", { ...posted(forced.length > 0 ? { text, prefix: forced } : { text }), signal });
  }

  text(row: number, signal: AbortSignal): Promise<Answer> {
    return this.json(`texts/${row}`, { signal });
  }

  async overview(map: string, signal: AbortSignal): Promise<Tile[]> {
    return unpackOverview(await this.bytes(path(map, "overview"), signal));
  }

  statistics(map: string, signal: AbortSignal): Promise<Statistics> {
    return this.json(path(map, "statistics"), { signal });
  }

  async tile(map: string, layer: number, part: Part, signal: AbortSignal): Promise<Tile> {
    return unpack(await this.bytes(path(map, `${layer}?${asTile(part)}`), signal));
  }

  async glance(map: string, layer: number, part: Part, signal: AbortSignal): Promise<Tile> {
    return unpack(await this.bytes(path(map, `${layer}/glance?${asTile(part)}`), signal));
  }

  private async share(address: string, signal: AbortSignal): Promise<number | null> {
    return (await this.json<{ share: number | null }>(address, { signal })).share;
  }

  progress(map: string, layer: number, part: Part, signal: AbortSignal): Promise<number | null> {
    return this.share(path(map, `${layer}/progress?${asTile(part)}`), signal);
  }

  tokens(map: string, layer: number, excerpt: Excerpt, signal: AbortSignal): Promise<Tokens> {
    return this.json(path(map, `${layer}/tokens?${ranges(excerpt)}`), { signal });
  }

  image(map: string, layer: number, signal: AbortSignal): Promise<ArrayBuffer> {
    return this.bytes(path(map, `${layer}/image`), signal);
  }

  file(map: string, link: string, layer?: number, part?: Part): Promise<ArrayBuffer> {
    const what = part ? `${layer}/parquet?${ranges(part.excerpt)}${said("head", part.head)}` : `file?link=${encodeURIComponent(link)}`;
    return this.bytes(path(map, what));
  }

  mechanism(map: string, { layer, head, row, key, unplaced }: MechanismQuestion, signal: AbortSignal): Promise<Explained> {
    return this.json(path(map, `${layer}/mechanism?row=${row}${said("head", head)}${said("key", key)}${unplaced ? "&positions=0" : ""}`), { signal });
  }

  beams(map: string, signal: AbortSignal): Promise<Beams> {
    return this.json(path(map, "beams"), { signal });
  }

  doubt(map: string, question: DoubtQuestion, signal: AbortSignal): Promise<Effects> {
    const { layer, key, weight, erased } = question;
    const edit = `${said("weight", weight)}${said("key", key)}${said("erased", erased && range(erased))}`;
    return this.json(path(map, `${layer}/doubt?${asked(question)}${edit}`), { signal });
  }

  adversary(map: string, question: DoubtQuestion, signal: AbortSignal): Promise<Adversary> {
    return this.json(path(map, `${question.layer}/adversary?${asked(question)}`), { signal });
  }

  searched(map: string, question: DoubtQuestion, signal: AbortSignal): Promise<number | null> {
    return this.share(path(map, `${question.layer}/adversary/progress?${asked(question)}`), signal);
  }

  alignment(map: string, layer: number, head: number | null, signal: AbortSignal): Promise<Alignment> {
    return this.json(path(map, `${layer}/alignment?${said("head", head)}`), { signal });
  }

  notes(): Promise<Note[]> {
    return this.noted("", {});
  }

  addNote(text: string, link: string): Promise<Note[]> {
    return this.noted("", posted({ text, link }));
  }

  removeNote(id: string): Promise<Note[]> {
    return this.noted(`/${id}`, { method: "DELETE" });
  }

  private async noted(which: string, request: RequestInit): Promise<Note[]> {
    return (await this.json<{ notes: Note[] }>(`notes${which}`, request)).notes;
  }

  private async json<Found>(path: string, request: RequestInit): Promise<Found> {
    return (await (await this.fetched(path, request)).json()) as Found;
  }

  private async bytes(path: string, signal?: AbortSignal): Promise<ArrayBuffer> {
    return (await this.fetched(path, { signal: signal ?? null })).arrayBuffer();
  }

  private async fetched(path: string, request: RequestInit): Promise<Response> {
    let response: Response;
    try {
      response = await fetch(`api/${this.source === 0 ? "" : `sources/${this.source}/`}${path}`, request);
    } catch (thrown) {
      if (request.signal?.aborted) throw thrown; // nobody waits for this answer any more
      throw new Problem(
        "an answer from attlas",
        "no connection to it",
        "check that attlas still runs in its terminal, then try again",
        true,
      );
    }
    if (response.ok) return response;
    const body: unknown = await response.json().catch(() => null);
    throw (
      Problem.read(body) ??
      new Problem("an answer from attlas", `status ${response.status}`, "try again")
    );
  }
}

function asTile({ excerpt, head, rough }: Part): string {
  const levels = rough ? "&bits=8&curve=root" : "";
  const heads = head === null ? "" : `&heads=${head}:${head + 1}`;
  return `${ranges(excerpt)}&shape=${cells(excerpt.rows)},${cells(excerpt.keys)}${heads}${levels}`;
}

function path(map: string, rest: string): string {
  return `maps/${encodeURIComponent(map)}/${rest}`;
}

function posted(body: object): RequestInit {
  return { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
}

/** A parameter, where it is given. */
function said(name: string, value: string | number | null): string {
  return value === null ? "" : `&${name}=${value}`;
}

function asked({ head, output, row }: DoubtQuestion): string {
  return `output=${output}&row=${row}${said("head", head)}`;
}

function range({ from, to }: Span): string {
  return `${from}:${to}`;
}

function ranges({ rows, keys }: Excerpt): string {
  return `rows=${range(rows)}&keys=${range(keys)}`;
}
