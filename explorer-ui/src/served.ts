import type { Answer, Door, Model } from "./door.ts";
import { Problem } from "./problem.ts";
import { type Tile, unpack } from "./tile.ts";

/** The door to `attlas look`: the server that this page came from, and no other. */
export class Served implements Door {
  async model(): Promise<Model> {
    return (await this.json("api/model", {})) as Model;
  }

  async translate(text: string, signal: AbortSignal): Promise<Answer> {
    const headers = { "Content-Type": "application/json" };
    const asked = { method: "POST", headers, body: JSON.stringify({ text }), signal };
    return (await this.json("api/translate", asked)) as Answer;
  }

  async tile(map: string, layer: number, signal: AbortSignal): Promise<Tile> {
    const came = await this.fetched(`api/maps/${encodeURIComponent(map)}/${layer}`, { signal });
    return unpack(await came.arrayBuffer());
  }

  private async json(path: string, asked: RequestInit): Promise<unknown> {
    return (await this.fetched(path, asked)).json();
  }

  private async fetched(path: string, asked: RequestInit): Promise<Response> {
    let came: Response;
    try {
      came = await fetch(path, asked);
    } catch (thrown) {
      if (asked.signal?.aborted) throw thrown; // nobody waits for this answer any more
      throw new Problem(
        "an answer from attlas",
        "no connection to it",
        "check that attlas still runs in its terminal, then try again",
      );
    }
    if (came.ok) return came;
    const body: unknown = await came.json().catch(() => null);
    throw (
      Problem.read(body) ??
      new Problem("an answer from attlas", `status ${came.status}`, "try again")
    );
  }
}
