import type { Signal } from "@preact/signals-core";
import { Fragment, h } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { AskPanel, Messages } from "./ask-panel.tsx";
import type { Explorer } from "./explorer.ts";
import { HeadsPanel } from "./heads-panel.tsx";
import { HelpDialog } from "./help-dialog.tsx";
import { Inspector } from "./inspector.tsx";
import { MapPanel } from "./map-panel.tsx";
import { ExplorerOf, useExplorer } from "./panel.ts";
import { Separator } from "./separator.tsx";
import { useSignal, useSignalEffect } from "./signals.ts";
import * as wording from "./wording.ts";
import type { Tab } from "./tabs.tsx";
import { WordsPanel } from "./words-panel.tsx";

/** The whole explorer: what is asked, all heads, the map, the words, and the inspector. */
export function Screen({ explorer, tabs }: { explorer: Explorer; tabs: readonly Tab[] }) {
  const help = useSignal(false);
  const { now } = explorer;
  const gone = now.problem.value?.gone === true;
  const key = (event: KeyboardEvent) => {
    const [target] = event.composedPath();
    const typing = target instanceof HTMLElement && /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
    if (event.key === "Escape" && !help.value) explorer.unpin();
    if (event.key === "?" && !typing) {
      event.preventDefault();
      help.value = true;
    }
  };
  useEffect(() => {
    // A page of its own hears keys wherever the focus is; one of several hears its own.
    if (!explorer.address) return;
    document.addEventListener("keydown", key);
    return () => document.removeEventListener("keydown", key);
  }, []);
  return (
    <ExplorerOf value={explorer}>
      <div
        class={gone ? "screen gone" : "screen"}
        onKeyDown={(event) => {
          if (!explorer.address) key(event);
        }}
      >
        <Head help={help} />
        <Messages />
        <Panes tabs={tabs} />
        <Notice />
        <Spoken />
        <HelpDialog open={help} />
      </div>
    </ExplorerOf>
  );
}

function Head({ help }: { help: Signal<boolean> }) {
  const explorer = useExplorer();
  const model = explorer.now.model.value;
  const facts = model?.facts ?? {};
  const { door } = explorer;
  return (
    <header class="head">
      <h1 class="mark">
        <svg viewBox="0 0 12 12" aria-hidden="true">
          <path class="pale" d="M0 0h12v12H0z" />
          <path d="M0 0h4v4H0zM4 4h4v4H4zM8 8h4v4H8z" />
        </svg>
        attlas
      </h1>
      {model?.sources && (
        <select
          id="subject"
          aria-label="What is shown"
          value={String(door.source)}
          onChange={(event) => door.choose?.(Number(event.currentTarget.value))}
        >
          {model.sources.map((name, index) => (
            <option key={index} value={String(index)}>
              {name}
            </option>
          ))}
        </select>
      )}
      <AskPanel />
      <p id="facts" class="facts" title={[...wording.phrases(facts), wording.signature(facts)].filter((one) => one !== "").join(" · ")}>
        {wording.phrases(facts).map((phrase) => (
          <span key={phrase}>{phrase}</span>
        ))}
      </p>
      <button
        id="help"
        type="button"
        class="round"
        aria-label="Help"
        title="Help (?)"
        onClick={() => (help.value = true)}
      >
        ?
      </button>
    </header>
  );
}

const PANES = [
  ["heads", "Heads"],
  ["map", "Map"],
  ["words", "Words"],
] as const;

function Panes({ tabs }: { tabs: readonly Tab[] }) {
  const explorer = useExplorer();
  const { now } = explorer;
  const panes = useRef<HTMLElement>(null);
  const shown = useSignal("map");
  // The same ones each time: they are drawn again when they have something new to show.
  const panels = useState(() => [<HeadsPanel />, <MapPanel />, <WordsPanel />, <Inspector all={tabs} />])[0];
  const several = (now.answer.value?.layers ?? []).reduce((sum, { heads }) => sum + heads, 0) > 1;
  const there = now.sheet.value !== null;
  const stale = now.translating.value !== null || (now.reading.value && now.sheet.value?.preview !== true);
  const go = (id: string) => {
    const pane = panes.current?.querySelector(`.pane.${id}`);
    panes.current?.scrollTo({ left: pane instanceof HTMLElement ? pane.offsetLeft : 0 });
  };
  // Which pane is in view is what the reader swiped to, or chose by its tab.
  const look = () => {
    const element = panes.current;
    if (!element || element.scrollWidth <= element.clientWidth) return;
    const there = PANES.filter(([id]) => id !== "heads" || several);
    shown.value = there[Math.round(element.scrollLeft / element.clientWidth)]?.[0] ?? "map";
  };
  useSignalEffect(() => {
    if (now.sheet.value) requestAnimationFrame(() => go(shown.peek()));
  });
  if (!there) {
    return (
      <main id="looking" class="nothing" hidden={now.answer.value !== null && now.answer.value.map === null}>
        <p class="hint">{emptyText(explorer)}</p>
      </main>
    );
  }
  return (
    <>
      <nav class="pane-tabs" aria-label="Panes">
        {PANES.filter(([id]) => id !== "heads" || several).map(([id, title]) => (
          <button key={id} type="button" aria-pressed={shown.value === id} onClick={() => go(id)}>
            {title}
          </button>
        ))}
      </nav>
      <main
        id="looking"
        ref={panes}
        class={`panes${stale ? " stale" : ""}${several ? "" : " single"}`}
        aria-busy={stale}
        onScroll={look}
      >
        <section id="heads" class="pane heads" aria-labelledby="heads-title" hidden={!several}>
          {panels[0]}
        </section>
        <Separator id="left" label="Width of the heads" orientation="vertical" property="--left" pane="heads" least={150} most={640} sign={1} frame={panes} />
        <section class="pane map" aria-label="Map">
          {panels[1]}
        </section>
        <Separator id="right" label="Width of the words" orientation="vertical" property="--right" pane="words" least={220} most={760} sign={-1} frame={panes} />
        <section class="pane words" aria-label="Words">
          {panels[2]}
        </section>
        <Separator id="below" label="Height of the inspector" orientation="horizontal" property="--below" pane="inspector" least={120} most={560} sign={-1} frame={panes} />
        <section class="pane inspector" aria-label="Inspector">
          {panels[3]}
        </section>
      </main>
    </>
  );
}

function emptyText({ now }: Explorer): string {
  if (now.problem.value) return "";
  if (!now.model.value) return "Opening the model…";
  if (now.translating.value !== null || now.reading.value) return "";
  return !now.model.value.texts
    ? "Type a text above. What the model reads and where it looks stands here."
    : "There is no text here.";
}

/** What is said to those who do not see the page. */
function Spoken() {
  return (
    <p class="unseen" id="spoken" role="status" aria-live="polite">
      {useExplorer().spoken.value}
    </p>
  );
}

/** A short word about what was just done. */
function Notice() {
  const explorer = useExplorer();
  const text = explorer.notice.value;
  useEffect(() => {
    if (text === "") return;
    const timer = setTimeout(() => (explorer.notice.value = ""), 8000);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <p id="notice" class="notice" role="status" hidden={text === ""}>
      {text}
    </p>
  );
}
