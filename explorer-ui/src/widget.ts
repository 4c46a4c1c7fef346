import styles from "./explorer.css?inline";
import { type Channel, Messages } from "./messages.ts";
import { ALL_TABS } from "./model-tabs.tsx";
import { constructed, mount } from "./mount.tsx";

/** What anywidget calls for each view of a widget. */
export default {
  render({ model, el }: { model: Channel; el: HTMLElement }): () => void {
    const door = new Messages(model);
    const mounted = mount(el, door, { styles: constructed(styles), tabs: ALL_TABS });
    return () => {
      mounted.unmount();
      door.close();
    };
  },
};
