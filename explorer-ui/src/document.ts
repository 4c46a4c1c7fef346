// What draws comes first in the script, and what is like it next to it: deflate looks back 32 kB.
import "./map-panel.tsx";
import "./head-grid.ts";
import "./screen.tsx";
import type { Door } from "./door.ts";
import type { Address, Explorer } from "./explorer.ts";
import { constructed, mount } from "./mount.tsx";
import type { Tab } from "./tabs.tsx";

/**
 * The address bar. Back goes to what was shown before: not to a page without anything, and not
 * through every step of a part or of a slider that was moved, but to where it was moved from.
 */
const address: Address = {
  read: () => location.hash,
  write(next) {
    const now = location.hash;
    if (next === "" || next === now) return;
    const still = (hash: string) => hash.replace(/(&([qktfn]|wt|mf)=)[^&]*/g, "$1");
    if (now !== "" && now !== "#" && still(now) !== still(next)) history.pushState(null, "", next);
    else history.replaceState(null, "", next);
  },
  whenChanged(follow) {
    window.addEventListener("hashchange", follow);
    return () => window.removeEventListener("hashchange", follow);
  },
};

/** An explorer that has a document of its own. In the frame of a notebook a document has no address. */
export function openIn(body: HTMLElement, door: Door, tabs: readonly Tab[]): Explorer {
  // The document's style sheet is the explorer's too: it is there before this script, and no part
  // of it. In a file of one's own it is an element of the document.
  const own = document.querySelector<HTMLLinkElement | HTMLStyleElement>("link[rel=stylesheet], style")?.sheet;
  const styles = constructed(Array.from(own?.cssRules ?? [], (rule) => rule.cssText).join("\n"));
  const { explorer } = mount(body, door, location.protocol === "about:" ? { styles, tabs } : { styles, tabs, address });
  // A browser keeps a page that was left, with its requests, which the server would work for.
  addEventListener("pagehide", () => explorer.pause());
  addEventListener("pageshow", ({ persisted }) => persisted && explorer.retry());
  return explorer;
}
