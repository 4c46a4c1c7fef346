/** What went wrong, in the three parts in which attlas says it. */
export class Problem extends Error {
  constructor(
    readonly wanted: string,
    readonly came: string,
    readonly remedy: string,
  ) {
    super(`Wanted ${wanted}; got ${came}. ${capitalised(remedy)}.`);
  }

  /** A problem from what the server sent, or from whatever else was thrown. */
  static of(thrown: unknown): Problem {
    if (thrown instanceof Problem) return thrown;
    const said = thrown instanceof Error ? thrown.message : String(thrown);
    return new Problem("an answer", `an error of the page (${said})`, "load the page again");
  }

  /** {"wanted", "came", "do"} as the server writes it; null where it is something else. */
  static read(body: unknown): Problem | null {
    if (typeof body !== "object" || body === null) return null;
    const { wanted, came, do: remedy } = body as Record<string, unknown>;
    const whole = [wanted, came, remedy].every((part) => typeof part === "string");
    return whole ? new Problem(wanted as string, came as string, remedy as string) : null;
  }
}

function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
