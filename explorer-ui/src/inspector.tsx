import { Fragment, h } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useExplorer } from "./panel.ts";
import { useSignal } from "./signals.ts";
import type { Tab } from "./tabs.tsx";

/** The tabs under the map; the one that is open is in the link. */
export function Inspector({ all }: { all: readonly Tab[] }) {
  const explorer = useExplorer();
  const room = useRef<HTMLDivElement>(null);
  const focused = useSignal<string | null>(null); // the tab to which keys led: not yet another one
  const tabs = all.filter((one) => one.accepts(explorer.door, explorer.now.answer.value, explorer.now.model.value));
  // Of an image, the patches say more than their numbers.
  const first = tabs.find(({ id }) => id === "image" && explorer.layer.value?.image) ?? tabs[0];
  const open = tabs.find(({ id }) => id === explorer.now.tab.value) ?? first;
  useEffect(() => (!room.current ? undefined : open?.mount(room.current, explorer)), [open?.id]);
  useEffect(() => {
    const list = room.current?.parentElement?.querySelector<HTMLElement>(".tabs");
    const chosen = list?.querySelector<HTMLElement>("[aria-selected=true]");
    if (list && chosen) list.scrollLeft = chosen.offsetLeft + chosen.offsetWidth - list.clientWidth;
    if (focused.value !== open?.id) return;
    chosen?.focus();
    focused.value = null;
  }, [open?.id]);
  const choose = (id: string | undefined, focus: boolean) => {
    focused.value = focus && id ? id : null;
    room.current?.closest(".panes")?.scrollTo({ left: room.current.offsetLeft }); // where panes are swiped
    if (id !== undefined) explorer.set({ tab: id === first?.id ? null : id });
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
