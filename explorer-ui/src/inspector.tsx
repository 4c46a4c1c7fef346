import { type ComponentType, Fragment, h, render } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { AlignmentPanel } from "./alignment-panel.tsx";
import { BeamsPanel } from "./beams-panel.tsx";
import { ComparePanel } from "./compare-panel.tsx";
import { DistributionPanel } from "./distribution-panel.tsx";
import type { Answer, Door, Model } from "./door.ts";
import { DoubtPanel } from "./doubt-panel.tsx";
import type { Explorer } from "./explorer.ts";
import { ImagePanel } from "./image-panel.tsx";
import { LinesPanel } from "./lines-panel.tsx";
import { NotesPanel } from "./notes-panel.tsx";
import { MechanismPanel } from "./mechanism-panel.tsx";
import { ExplorerOf, useExplorer } from "./panel.ts";
import { useSignal, useSignalEffect } from "./signals.ts";
import type { State } from "./state.ts";
import { StatisticsPanel } from "./statistics-panel.tsx";

/** What stands in a tab while it is open. */
export interface Panel {
  update(state: State): void;
  unmount(): void;
}

/** A tab of the inspector. */
export interface Tab {
  /** Letters, as the link has it. */
  readonly id: string;
  readonly title: string;
  /** Whether it has something to say of this answer of this door. */
  accepts(door: Door, answer: Answer | null, model: Model | null): boolean;
  mount(room: HTMLElement, explorer: Explorer): Panel;
}

/** A tab whose panel follows the explorer's signals by itself. */
function tab(id: string, title: string, Content: ComponentType, accepts: Tab["accepts"] = () => true): Tab {
  return {
    id,
    title,
    accepts,
    mount(room, explorer) {
      render(
        <ExplorerOf value={explorer}>
          <Content />
        </ExplorerOf>,
        room,
      );
      return { update: () => undefined, unmount: () => render(null, room) };
    },
  };
}

export const TABS: readonly Tab[] = [
  tab("distribution", "Distribution", DistributionPanel),
  tab("lines", "Lines", LinesPanel),
  tab("image", "Image", ImagePanel, (_, answer) => answer?.layers.some(({ image }) => image) === true),
  tab("mechanism", "Mechanism", MechanismPanel, (door) => door.mechanism !== undefined),
  tab("statistics", "Statistics", StatisticsPanel),
  tab("compare", "Compare", ComparePanel),
  // Of a model that has no output, it says so.
  tab("doubt", "Doubt", DoubtPanel, (door, answer, model) => door.doubt !== undefined && !!answer && model?.texts === null),
  tab("beams", "Beams", BeamsPanel, (door, answer) => door.beams !== undefined && answer?.beams === true),
  tab("alignment", "Alignment", AlignmentPanel, (door, _, model) => door.alignment !== undefined && model?.gold === true),
  tab("notes", "Notes", NotesPanel, (door, _, model) => door.notes !== undefined && model?.notes === true),
];

/** The tabs under the map; the one that is open is in the link. */
export function Inspector() {
  const explorer = useExplorer();
  const room = useRef<HTMLDivElement>(null);
  const mounted = useRef<{ id: string; panel: Panel } | null>(null);
  const focused = useSignal<string | null>(null); // the tab to which keys led: not yet another one
  const tabs = TABS.filter((one) => one.accepts(explorer.door, explorer.now.answer.value, explorer.now.model.value));
  const open = tabs.find(({ id }) => id === explorer.now.tab.value) ?? tabs[0];
  useEffect(() => {
    if (room.current === null || open === undefined) return;
    mounted.current = { id: open.id, panel: open.mount(room.current, explorer) };
    return () => {
      mounted.current?.panel.unmount();
      mounted.current = null;
    };
  }, [open?.id]);
  useSignalEffect(() => mounted.current?.panel.update(explorer.whole.value));
  useEffect(() => {
    const list = room.current?.parentElement?.querySelector<HTMLElement>(".tabs");
    const chosen = list?.querySelector<HTMLElement>("[aria-selected=true]");
    if (list && chosen) list.scrollLeft = chosen.offsetLeft + chosen.offsetWidth - list.offsetLeft - list.clientWidth;
    if (focused.value !== open?.id) return;
    chosen?.focus();
    focused.value = null;
  }, [open?.id]);
  const choose = (id: string | undefined, focus: boolean) => {
    focused.value = focus && id ? id : null;
    if (id !== undefined) explorer.set({ tab: id === tabs[0]?.id ? null : id });
  };
  return (
    <>
      <div
        class="tabs"
        role="tablist"
        aria-label="Inspector"
        onKeyDown={(event) => {
          const here = tabs.findIndex(({ id }) => id === open?.id);
          const next = { ArrowLeft: here - 1, ArrowRight: here + 1, Home: 0, End: tabs.length - 1 }[event.key];
          if (next === undefined) return;
          event.preventDefault();
          choose(tabs[(next + tabs.length) % tabs.length]?.id, true);
        }}
      >
        {tabs.map(({ id, title }) => (
          <button
            key={id}
            id={`tab-${id}`}
            type="button"
            role="tab"
            aria-selected={id === open?.id}
            aria-controls="inspected"
            tabIndex={id === open?.id ? 0 : -1}
            onClick={() => choose(id, false)}
          >
            {title}
          </button>
        ))}
      </div>
      <div id="inspected" class="inspected" ref={room} role="tabpanel" aria-labelledby={`tab-${open?.id}`} />
    </>
  );
}
