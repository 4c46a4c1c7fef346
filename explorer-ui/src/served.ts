import type { Adversary, Answer, Beams, Door, DoubtQuestion, Effects, Explained, MechanismQuestion, Model, Note, Part, Statistics, Tokens } from "./door.ts";
import { type Excerpt, type Span, cells } from "./excerpt.ts";
import { Problem } from "./problem.ts";
import { type Tile, unpack, unpackOverview } from "./tile.ts";

/** The door to `attlas look`: the server that this page came from, and no other. */
export class Served implements Door {
  async model(): Promise<Model> {
    return (await this.json("api/model", {})) as Model;
  }

  async translate(text: string, forced: readonly number[], signal: AbortSignal): Promise<Answer> {
    const headers = { "Content-Type": "application/json" };
    const asked = forced.length > 0 ? { text, prefix: forced } : { text };
    const request = { method: "POST", headers, body: JSON.stringify(asked), signal };
    return (await this.json("api/translate", request)) as Answer;
  }

  async text(row: number, signal: AbortSignal): Promise<Answer> {
    return (await this.json(`api/texts/${row}`, { signal })) as Answer;
  }

  async overview(map: string, signal: AbortSignal): Promise<Tile[]> {
    const address = `api/maps/${encodeURIComponent(map)}/overview`;
    return unpackOverview(await (await this.fetched(address, { signal })).arrayBuffer());
  }

  async statistics(map: string, signal: AbortSignal): Promise<Statistics> {
    const address = `api/maps/${encodeURIComponent(map)}/statistics`;
    return (await this.json(address, { signal })) as Statistics;
  }

  async tile(map: string, layer: number, part: Part, signal: AbortSignal): Promise<Tile> {
    const { excerpt, head, rough } = part;
    const levels = rough ? "&bits=8&curve=root" : "";
    const heads = head === null ? "" : `&heads=${head}:${head + 1}`;
    const shape = `&shape=${cells(excerpt.rows)},${cells(excerpt.keys)}`;
    const address = `${path(map, layer)}?${ranges(excerpt)}${shape}${heads}${levels}`;
    return unpack(await (await this.fetched(address, { signal })).arrayBuffer());
  }

  async tokens(map: string, layer: number, excerpt: Excerpt, signal: AbortSignal): Promise<Tokens> {
    return (await this.json(`${path(map, layer)}/tokens?${ranges(excerpt)}`, { signal })) as Tokens;
  }

  async mechanism(map: string, { layer, head, row, key }: MechanismQuestion, signal: AbortSignal): Promise<Explained> {
    const address = `${path(map, layer)}/mechanism?head=${head}&row=${row}${key === null ? "" : `&key=${key}`}`;
    return (await this.json(address, { signal })) as Explained;
  }

  async beams(map: string, signal: AbortSignal): Promise<Beams> {
    return (await this.json(`api/maps/${encodeURIComponent(map)}/beams`, { signal })) as Beams;
  }

  async doubt(map: string, question: DoubtQuestion, signal: AbortSignal): Promise<Effects> {
    const { layer, key, weight, erased } = question;
    const edit = `&weight=${weight}${key === null ? "" : `&key=${key}`}`;
    const without = erased === null ? "" : `&erased=${erased.from}:${erased.to}`;
    return (await this.json(`${path(map, layer)}/doubt?${asked(question)}${edit}${without}`, { signal })) as Effects;
  }

  async adversary(map: string, question: DoubtQuestion, signal: AbortSignal): Promise<Adversary> {
    return (await this.json(`${path(map, question.layer)}/adversary?${asked(question)}`, { signal })) as Adversary;
  }

  async notes(): Promise<Note[]> {
    return this.noted("", {});
  }

  async addNote(text: string, link: string): Promise<Note[]> {
    const headers = { "Content-Type": "application/json" };
    return this.noted("", { method: "POST", headers, body: JSON.stringify({ text, link }) });
  }

  async removeNote(id: string): Promise<Note[]> {
    return this.noted(`/${id}`, { method: "DELETE" });
  }

  private async noted(which: string, request: RequestInit): Promise<Note[]> {
    return ((await this.json(`api/notes${which}`, request)) as { notes: Note[] }).notes;
  }

  private async json(path: string, request: RequestInit): Promise<unknown> {
    return (await this.fetched(path, request)).json();
  }

  private async fetched(path: string, request: RequestInit): Promise<Response> {
    let response: Response;
    try {
      response = await fetch(path, request);
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

function path(map: string, layer: number): string {
  return `api/maps/${encodeURIComponent(map)}/${layer}`;
}

function asked({ head, output, row }: DoubtQuestion): string {
  return `output=${output}&row=${row}${head === null ? "" : `&head=${head}`}`;
}

function ranges({ rows, keys }: Excerpt): string {
  const range = ({ from, to }: Span) => `${from}:${to}`;
  return `rows=${range(rows)}&keys=${range(keys)}`;
}
