/** What went wrong, in the three parts in which attlas says it. */
export class Problem extends Error {
  constructor(
    readonly expected: string,
    readonly got: string,
    readonly hint: string,
    /** Whether nobody answers any more. */
    readonly gone = false,
  ) {
    super(`Expected ${expected}; got ${got}. ${capitalised(hint)}.`);
  }

  /** A problem from what the server sent, or from whatever else was thrown. */
  static of(thrown: unknown): Problem {
    if (thrown instanceof Problem) return thrown;
    const said = thrown instanceof Error ? thrown.message : String(thrown);
    return new Problem("an answer", `an error of the page (${said})`, "load the page again");
  }

  /** {"expected", "got", "hint"} as the server writes it; null where it is something else. */
  static read(body: unknown): Problem | null {
    if (typeof body !== "object" || body === null) return null;
    const { expected, got, hint } = body as Record<string, unknown>;
    const whole = [expected, got, hint].every((part) => typeof part === "string");
    return whole ? new Problem(expected as string, got as string, hint as string) : null;
  }
}

function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
