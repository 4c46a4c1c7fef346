import type { Signal } from "@preact/signals-core";
import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Problem } from "./problem.ts";
import { useSignal } from "./signals.ts";

const PATIENCE = 120; // ms without another question, after which one is asked

/** What is known of a question: the latest answer, what is wrong, and whether one is on its way. */
export interface Asking<Asked, Found> {
  readonly came: Signal<{ readonly asked: Asked; readonly found: Found } | null>;
  readonly problem: Signal<string>;
  readonly waiting: Signal<boolean>;
}

/** Ask whenever `key` changes, and let go of what was asked before. */
export function useAsked<Asked, Found>(
  asked: Asked | null,
  key: unknown,
  ask: (asked: Asked, signal: AbortSignal) => Promise<Found> | undefined,
): Asking<Asked, Found> {
  const came = useSignal<{ asked: Asked; found: Found } | null>(null);
  const [problem, waiting] = [useSignal(""), useSignal(false)];
  useEffect(() => {
    if (asked === null) return;
    const stop = new AbortController();
    waiting.value = true;
    const timer = setTimeout(
      () =>
        ask(asked, stop.signal)?.then(
          (found) => {
            if (!stop.signal.aborted) [came.value, problem.value, waiting.value] = [{ asked, found }, "", false];
          },
          (thrown: unknown) => {
            if (!stop.signal.aborted) [problem.value, waiting.value] = [Problem.of(thrown).message, false];
          },
        ),
      !came.peek() ? 0 : PATIENCE,
    );
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [key]);
  return { came, problem, waiting };
}

/** A canvas that is drawn when any of `needs` changes, and when what it is in has another size. */
export function useCanvas(
  draw: (canvas: HTMLCanvasElement, pen: CanvasRenderingContext2D, room: HTMLElement) => void,
  needs: readonly unknown[],
): RefObject<HTMLCanvasElement> {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const [element, pen, room] = [canvas.current, canvas.current?.getContext("2d"), canvas.current?.parentElement];
    if (!element || !pen || !room) return;
    const again = () => draw(element, pen, room);
    again();
    const observer = new ResizeObserver(again);
    observer.observe(room);
    return () => observer.disconnect();
  }, needs);
  return canvas;
}
